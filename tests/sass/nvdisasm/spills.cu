// An array indexed at run time: local memory.
extern "C" __global__ void probe(int const* in, int* out) {
  int values[32];
  for (int k = 0; k < 32; ++k) {
    values[in[k] & 31] = k;
  }
  out[threadIdx.x] = values[threadIdx.x & 31];
}
