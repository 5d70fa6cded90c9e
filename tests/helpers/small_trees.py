"""Trees of the targets that are in git alone, whole or in part: cases of a patch, and stand-ins for the rest."""

from pathlib import Path

from cases import cases

CONVERSION = "mlx/backend/cuda/quantized/nvfp4_quantize.cuh"
LISTS = "mlx/backend/cuda/CMakeLists.txt"
QUTLASS = "qutlass/csrc/include/cutlass_extensions"
CASES = {
    "flash_attention": ("flash_attention/native-arch", {"CMakeLists.txt": "lists.cmake"}),
    "mlx": ("mlx/family-guard", {CONVERSION: "conversion.cuh"}),
    "qutlass": (
        "qutlass/sm120-family",
        {
            "setup.py": "setup.py",
            "qutlass/csrc/bindings.cpp": "rotation-of-128-with-sm110.cpp",
            "qutlass/csrc/gemm.cu": "gemm.cu",
            "qutlass/csrc/gemm_ada.cu": "gemm-small-batches.cu",
            f"{QUTLASS}/arch/mma_mx_sm120.h": "multiplication.h",
            f"{QUTLASS}/gemm/warp/mma_mx_tensor_op.h": "order-of-tiles.h",
        },
    ),
    "transformer_engine": (
        "transformer_engine/arch-list",
        {"transformer_engine/common/CMakeLists.txt": "lists-of-three-kinds.cmake"},
    ),
}
"""Each target's patch, and its files that are a case of this patch."""
OTHERS = {
    "flash_attention": {"cmake/utils.cmake": "", "vllm_flash_attn/__init__.py": '__version__ = "2.7.2.post1"\n'},
    "mlx": {
        "mlx/version.h": "#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n#define MLX_VERSION_PATCH 1\n",
        LISTS: f"set(MLX_CUDA_ARCHITECTURES 120f)\n{cases('mlx/fp4-suffix')['short.cmake'].before}",
        "mlx/backend/cuda/vector_types.cuh": """#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace mlx::core::cu {
template <typename T>
struct Vector4 {
  T x, y, z, w;
};
template <typename T>
using Vector4_t = Vector4<T>;
} // namespace mlx::core::cu
""",
    },
    "qutlass": {"pyproject.toml": '[project]\nversion = "0.2.0"\n'},
    "transformer_engine": {"build_tools/VERSION.txt": "2.18.0\n", "transformer_engine/common/util/ptx.cuh": ""},
}


def small_tree(target: str, root: Path) -> Path:
    """Write the tree of a target in ``CASES`` to ``root``."""
    patch, files = CASES[target]
    excerpts = {path: cases(patch)[case].before for path, case in files.items()}
    for path, text in {**OTHERS[target], **excerpts}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
