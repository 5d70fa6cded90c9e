// The header alone, host pass included: device functions called from host code show here and nowhere else.

#include "cutlass/numeric_conversion.h"

// What the header says of layout ends with it.
struct AfterTheHeader {
  char byte;
  double number;
};
static_assert(sizeof(AfterTheHeader) == 16 && alignof(AfterTheHeader) == 8);
