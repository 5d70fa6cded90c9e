// TransformerEngine's own NVFP4 kernels behind functions that ctypes can call. Each returns 0, or 1 and leaves its message
// in te_error(). Pointers are device memory; rng_state is two 64-bit numbers, seed and offset, or null.
#include <string>

#include "common/cast/core/common.cuh"
#include "common/cast/nvfp4/quantize_transpose_nvfp4.cuh"
#include "common/hadamard_transform/hadamard_transform.cu"
#include "common/transpose/quantize_transpose_vector_blockwise_fp4.cu"

using namespace transformer_engine;

namespace bridge {

std::string message;

template <typename Function>
int guarded(Function function) {
  try {
    function();
    return 0;
  } catch (const std::exception& error) {
    message = error.what();
    return 1;
  }
}

// One call of one function of ptx.cuh for each thread: in has the bits of n x lanes values, rbits a word for four.
template <int FUNCTION>
__global__ void call(const void* in, const unsigned int* rbits, float scale, unsigned int* out, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  const auto* bf16x4 = static_cast<const unsigned long long*>(in);
  const auto* fp32x4 = static_cast<const float4*>(in);
  const float2 scales{scale, scale};
  if constexpr (FUNCTION == 0 || FUNCTION == 1) {
    const auto four = ptx::mul_cvt_bf16_to_fp4_4x<FUNCTION == 0>(bf16x4[at], scales, rbits[at]);
    out[at] = reinterpret_cast<const unsigned short&>(four);
  } else if constexpr (FUNCTION == 2 || FUNCTION == 3) {
    const float4 v = fp32x4[at];
    const auto four = ptx::mul_cvt_fp32_to_fp4_4x<FUNCTION == 2>({v.x, v.y}, {v.z, v.w}, scales, rbits[at]);
    out[at] = reinterpret_cast<const unsigned short&>(four);
  } else if constexpr (FUNCTION == 4) {
    out[at] = ptx::mul_cvt_bf16_to_fp4_8x_stochastic_rounding<float>(bf16x4[2 * at], bf16x4[2 * at + 1], scale,
                                                                     rbits[2 * at], rbits[2 * at + 1]);
  } else if constexpr (FUNCTION == 5) {
    out[at] = ptx::mul_cvt_bf16_to_fp4_8x_round_to_nearest<float>(bf16x4[2 * at], bf16x4[2 * at + 1], scale);
  } else if constexpr (FUNCTION == 6) {
    out[at] = ptx::mul_cvt_bf16_to_fp4_8x_stochastic_rounding<bf16>(bf16x4[2 * at], bf16x4[2 * at + 1],
                                                                    static_cast<bf16>(scale), rbits[2 * at], rbits[2 * at + 1]);
  } else if constexpr (FUNCTION == 7) {
    out[at] = ptx::mul_cvt_bf16_to_fp4_8x_round_to_nearest<bf16>(bf16x4[2 * at], bf16x4[2 * at + 1],
                                                                 static_cast<bf16>(scale));
  }
}

// The first `count` words of the stream of each sequence, as the kernels draw them.
__global__ void draw(const size_t* state, int sequences, int count, unsigned int* out) {
  const size_t sequence = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (sequence >= static_cast<size_t>(sequences)) return;
  curanddx::detail::philox4x32_native_state<NVTE_BUILD_NUM_PHILOX_ROUNDS> rng;
  rng.init(state[0], sequence, state[1]);
  for (int at = 0; at < count; at += 4) {
    const uint4 four = rng.generate4();
    *reinterpret_cast<uint4*>(out + sequence * count + at) = four;
  }
}

Tensor fp4(size_t rows, size_t columns, void* data, void* scales, void* data_t, void* scales_t, void* amax, size_t stride,
           size_t stride_t) {
  Tensor tensor;
  tensor.scaling_mode = NVTE_NVFP4_1D_SCALING;
  if (data != nullptr) {
    tensor.data = SimpleTensor(data, {rows, columns}, DType::kFloat4E2M1);
    tensor.scale_inv = SimpleTensor(scales, {(rows + 127) / 128 * 128, stride}, DType::kFloat8E4M3);
  }
  if (data_t != nullptr) {
    tensor.columnwise_data = SimpleTensor(data_t, {columns, rows}, DType::kFloat4E2M1);
    tensor.columnwise_scale_inv = SimpleTensor(scales_t, {(columns + 127) / 128 * 128, stride_t}, DType::kFloat8E4M3);
  }
  tensor.amax = SimpleTensor(amax, {1}, DType::kFloat32);
  tensor.columnwise_amax = SimpleTensor(amax, {1}, DType::kFloat32);
  return tensor;
}

// A handle of TransformerEngine's own for the state of the random numbers; one for the whole process.
NVTETensor state(void* rng_state) {
  static NVTETensor tensor = nvte_create_tensor(NVTE_DELAYED_TENSOR_SCALING);
  if (rng_state == nullptr) return nullptr;
  convertNVTETensor(tensor)->data = SimpleTensor(rng_state, {2}, DType::kInt64);
  return tensor;
}

}  // namespace bridge

using namespace bridge;

extern "C" {

const char* te_error() { return message.c_str(); }

// kernel: 0 tuned for bfloat16, 1 its form with bfloat16 scales, 2 squares of 16 x 16, 3 any input, 4 any input and squares.
int te_quantize(int kernel, int dtype, void* input, size_t rows, size_t columns, void* amax, void* data, void* scales,
                void* data_t, void* scales_t, size_t stride, size_t stride_t, int stochastic, void* rng_state, void* stream) {
  return guarded([&] {
    Tensor in, noop;
    in.data = SimpleTensor(input, {rows, columns}, static_cast<DType>(dtype));
    Tensor out = fp4(rows, columns, data, scales, data_t, scales_t, amax, stride, stride_t);
    QuantizationConfig config;
    config.stochastic_rounding = stochastic != 0;
    config.rng_state = state(rng_state);
    config.use_fast_math = kernel == 1;
    config.nvfp4_2d_quantization = kernel == 2 || kernel == 4;
    const auto on = static_cast<cudaStream_t>(stream);
    if (kernel >= 3) {
      detail::quantize_transpose_vector_blockwise_fp4(
          in.data, out.amax, out.scale_inv, out.columnwise_scale_inv, out.data, out.columnwise_data, 0.0f, data != nullptr,
          data_t != nullptr, false, false, config.stochastic_rounding, config.rng_state, config.nvfp4_2d_quantization, false,
          noop.data, on);
    } else if (kernel == 2) {
      dispatch::nvfp4::quantize_transpose<true>(in, &noop, &out, &config, on);
    } else {
      dispatch::nvfp4::quantize_transpose<false>(in, &noop, &out, &config, on);
    }
  });
}

// The transform of the transposed matrix, as the recipe uses it before it quantizes columns: output is columns x rows.
int te_hadamard(void* input, size_t rows, size_t columns, int signs, void* output_t, void* stream) {
  return guarded([&] {
    Tensor in, out;
    in.data = SimpleTensor(input, {rows, columns}, DType::kBFloat16);
    out.data = SimpleTensor(output_t, {columns, rows}, DType::kBFloat16);
    hadamard_transform(in, out, 0, static_cast<uint16_t>(signs), static_cast<cudaStream_t>(stream));
  });
}

int te_call(int function, void* in, void* rbits, float scale, void* out, int n) {
  using Kernel = void (*)(const void*, const unsigned int*, float, unsigned int*, int);
  const Kernel kernels[] = {call<0>, call<1>, call<2>, call<3>, call<4>, call<5>, call<6>, call<7>};
  kernels[function]<<<(n + 255) / 256, 256>>>(in, static_cast<const unsigned int*>(rbits), scale, static_cast<unsigned int*>(out), n);
  return cudaGetLastError() != cudaSuccess;
}

int te_draw(void* rng_state, int sequences, int count, void* out) {
  draw<<<(sequences + 255) / 256, 256>>>(static_cast<const size_t*>(rng_state), sequences, count, static_cast<unsigned int*>(out));
  return cudaGetLastError() != cudaSuccess;
}

}  // extern "C"
