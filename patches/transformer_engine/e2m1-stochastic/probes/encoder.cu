// The functions of the encoders, one by one: of VALUES floats, or halves in pairs; with RANDOM of floats and a random word
// for four of them; with FACTOR of a product with it and a zero addend, which makes +0 of -0: there the value itself is
// converted. Pristine TransformerEngine has no encoder: the sign takes the place.

#include "functions.cuh"

#include "../../../../encoders/probes/one-by-one.cuh"

#if !defined(SOURCE) || !defined(PAIR) || !defined(VALUES)
#error "SOURCE and VALUES: the values that a thread converts, of which there are 1, 2, 4, 8 or 16; PAIR: SOURCE or the type of two"
#endif

#ifdef FACTOR
extern "C" __global__ void probe(SOURCE const* source, unsigned char* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  float const x = source[i];
#ifdef FP4PATCH_OPERANDS_CUH
  float const product = fp4patch_operands::mul_plus_zero(x, FACTOR);
  packed[i] = fp4patch_half_pair::e2m1(product == 0.0f ? x : product);
#else
  packed[i] = x < 0 ? 8 : 0;
#endif
}
#elif RANDOM
struct Record {
  float value[VALUES];
  unsigned int random[(VALUES + 3) / 4];
};

extern "C" __global__ void probe(Record const* source, one_by_one::Packed<VALUES>* packed) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  Record const record = source[i];
  float const(&v)[VALUES] = record.value;
#if !defined(FP4PATCH_STOCHASTIC_CUH)
  packed[i] = v[0] < 0 ? 8 : 0;
#elif VALUES == 1
  packed[i] = fp4patch_stochastic::e2m1(v[0], record.random[0]);
#elif VALUES == 2
  packed[i] = fp4patch_stochastic::e2m1_x2(v[0], v[1], record.random[0]);
#elif VALUES == 4
  packed[i] = fp4patch_stochastic::e2m1_x4(v[0], v[1], v[2], v[3], record.random[0]);
#else
  packed[i] = fp4patch_stochastic::e2m1_x8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], record.random[0],
                                           record.random[1]);
#endif
}
#else
extern "C" __global__ void probe(one_by_one::Load<SOURCE, VALUES> const* source, one_by_one::Packed<VALUES>* packed) {
  one_by_one::convert<PAIR, VALUES>(source, packed, [](float x) { return x < 0 ? 8 : 0; });
}
#endif
