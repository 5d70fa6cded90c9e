// The functions of the encoder, some of which no statement of vLLM calls, one by one: of VALUES floats, or halves in pairs.
// Pristine vLLM has no encoder; the instruction takes the place.

#include "nvfp4.cuh"

#include "../../../../encoders/probes/one-by-one.cuh"

#if !defined(SOURCE) || !defined(PAIR) || !defined(VALUES)
#error "SOURCE and VALUES: the values that a thread converts, of which there are 1, 2, 4, 8 or 16; PAIR: SOURCE or the type of two"
#endif

extern "C" __global__ void probe(one_by_one::Load<SOURCE, VALUES> const* source, one_by_one::Packed<VALUES>* packed) {
  one_by_one::convert<PAIR, VALUES>(source, packed);
}
