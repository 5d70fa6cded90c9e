// Makes vLLM's quantization kernels callable from Python, without the rest of vLLM. The functions are those of the
// release's own files; from 0.19 on they take tensors of PyTorch's stable interface.
#include <torch/extension.h>

#if FP4PATCH_STABLE
#include <torch/csrc/inductor/aoti_torch/utils.h>
#include <torch/csrc/stable/tensor.h>
using Taken = torch::stable::Tensor;
static Taken taken(at::Tensor tensor) { return Taken(torch::aot_inductor::new_tensor_handle(std::move(tensor))); }
#else
using Taken = torch::Tensor;
static Taken taken(at::Tensor tensor) { return tensor; }
#endif

#if FP4PATCH_LAYOUTS
void scaled_fp4_quant_sm1xxa(Taken const& out, Taken const& in, Taken const& scales, Taken const& scale, bool swizzled);
#else
void scaled_fp4_quant_sm1xxa(Taken const& out, Taken const& in, Taken const& scales, Taken const& scale);
#endif
void silu_and_mul_nvfp4_quant_sm1xxa(Taken& out, Taken& scales, Taken& in, Taken& scale);
void FP4PATCH_EXPERTS(Taken& out, Taken& scales, Taken const& in, Taken const& scale, Taken const& offsets,
                      Taken const& scale_offsets);
#if FP4PATCH_FUSED_EXPERTS
void silu_and_mul_scaled_fp4_experts_quant_sm1xxa(Taken& out, Taken& scales, Taken const& in, Taken const& scale,
                                                  Taken const& offsets, Taken const& scale_offsets);
#endif
void fp4patch_activate(void const* x, void const* y, void* out, int64_t values, bool bfloat16);

__global__ static void reciprocals(float const* in, float* out, int64_t count) {
  int64_t const i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out[i]) : "f"(in[i]));
}

using Tensor = at::Tensor;

PYBIND11_MODULE(TORCH_EXTENSION_NAME, python) {
  python.def("quantize", [](Tensor out, Tensor scales, Tensor in, Tensor scale) {
#if FP4PATCH_LAYOUTS
    scaled_fp4_quant_sm1xxa(taken(out), taken(in), taken(scales), taken(scale), true);
#else
    scaled_fp4_quant_sm1xxa(taken(out), taken(in), taken(scales), taken(scale));
#endif
  });
  python.def("silu_and_mul_quantize", [](Tensor out, Tensor scales, Tensor in, Tensor scale) {
    Taken o = taken(out), s = taken(scales), i = taken(in), g = taken(scale);
    silu_and_mul_nvfp4_quant_sm1xxa(o, s, i, g);
  });
  python.def("quantize_experts", [](Tensor out, Tensor scales, Tensor in, Tensor scale, Tensor rows, Tensor scale_rows) {
    Taken o = taken(out), s = taken(scales);
    FP4PATCH_EXPERTS(o, s, taken(in), taken(scale), taken(rows), taken(scale_rows));
  });
#if FP4PATCH_FUSED_EXPERTS
  python.def("silu_and_mul_quantize_experts",
             [](Tensor out, Tensor scales, Tensor in, Tensor scale, Tensor rows, Tensor scale_rows) {
               Taken o = taken(out), s = taken(scales);
               silu_and_mul_scaled_fp4_experts_quant_sm1xxa(o, s, taken(in), taken(scale), taken(rows),
                                                            taken(scale_rows));
             });
#endif
  python.def("activate", [](Tensor x, Tensor y) {
    Tensor out = at::empty_like(x);
    fp4patch_activate(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel(), x.scalar_type() == at::kBFloat16);
    return out;
  });
  python.def("reciprocal", [](Tensor x) {
    Tensor out = at::empty_like(x);
    if (x.numel())
      reciprocals<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
  });
}
