// A conversion that waits for the kernel in front of it, and lets the one behind it begin.
#include <cutlass/arch/config.h>
#include <cutlass/arch/grid_dependency_control.h>
#include <cutlass/numeric_conversion.h>

using Values = cutlass::Array<float, 8>;
using Codes = cutlass::Array<cutlass::float_e2m1_t, 8>;

extern "C" __global__ void probe(Values const* values, Codes* codes) {
  cutlass::arch::wait_on_dependent_grids();
  codes[threadIdx.x] = cutlass::NumericArrayConverter<cutlass::float_e2m1_t, float, 8>::convert(values[threadIdx.x]);
  cutlass::arch::launch_dependent_grids();
}
