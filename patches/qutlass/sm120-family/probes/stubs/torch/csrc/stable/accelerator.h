#include <tensor.h>
