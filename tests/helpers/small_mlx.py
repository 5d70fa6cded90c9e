"""An MLX of the files that its patch edits and compiles: a case of the patch, and stand-ins for the rest."""

from __future__ import annotations

from pathlib import Path

from cases import cases

from fp4patch.catalog.manifest import data_root

PATCH = data_root() / "patches/mlx/family-guard"
CONVERSION = "mlx/backend/cuda/quantized/nvfp4_quantize.cuh"
OTHERS = {
    "mlx/version.h": "#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n#define MLX_VERSION_PATCH 1\n",
    "mlx/backend/cuda/CMakeLists.txt": "set_target_properties(mlx PROPERTIES CUDA_ARCHITECTURES 120f)\n",
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
}


def small_mlx(root: Path) -> Path:
    for path, text in {**OTHERS, CONVERSION: cases("mlx/family-guard")["conversion.cuh"].before}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root
