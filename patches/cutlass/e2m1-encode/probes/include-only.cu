// The header alone, host pass included: device functions called from host code show here and nowhere else.

#include "cutlass/numeric_conversion.h"
