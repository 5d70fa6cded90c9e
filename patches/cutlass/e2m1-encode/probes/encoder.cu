// The functions of the encoder that e2m1-encode puts into CUTLASS, called one by one: of VALUES values of type
// SOURCE, or of VALUES / 2 pairs of type PAIR. Pristine CUTLASS has no such function; its own converter takes the place.

#include "cutlass/numeric_conversion.h"

#include "../../../../encoders/probes/one-by-one.cuh"

#if !defined(SOURCE) || !defined(PAIR) || !defined(VALUES)
#error "SOURCE and VALUES: the values that a thread converts, of which there are 1, 2, 4, 8 or 16; PAIR: SOURCE or the type of two"
#endif

extern "C" __global__ void probe(one_by_one::Load<SOURCE, VALUES> const* source, one_by_one::Packed<VALUES>* packed) {
  one_by_one::convert<PAIR, VALUES>(source, packed, [](float x) {
    return cutlass::NumericConverter<cutlass::float_e2m1_t, float>::convert(x).raw();
  });
}
