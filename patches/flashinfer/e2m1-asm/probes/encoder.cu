// The functions of the encoder that no statement of FlashInfer calls, one by one: of VALUES floats, or halves in pairs.
// Pristine FlashInfer has no encoder; its own conversion takes the place.

#include "copies.cuh"

#include "../../../../encoders/probes/one-by-one.cuh"

#if !defined(SOURCE) || !defined(PAIR) || !defined(VALUES)
#error "SOURCE and VALUES: the values that a thread converts, of which there are 2, 4, 8 or 16; PAIR: SOURCE or the type of two"
#endif

extern "C" __global__ void probe(one_by_one::Load<SOURCE, VALUES> const* source, one_by_one::Packed<VALUES>* packed) {
  one_by_one::convert<PAIR, VALUES>(source, packed, [](float x) {
#ifdef ENCODER
    return 0u;
#else
    return flashinfer::math::fp32_vec_to_e2m1(x, 0, 0, 0, 0, 0, 0, 0);  // older releases do not have it
#endif
  });
}
