#!/bin/bash
# Build a library of TransformerEngine's NVFP4 kernels: its own sources, its own host code, and kernels.cu to call them.
# For an H100 the tree is one that hopper.py has changed. About 75 s. Usage: build.sh TREE LIBRARY [ARCH] (sm_90)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$1" && pwd) library=$(realpath -m "$2") arch=${3:-sm_90}
stubs=${STUBS:-$here/../../../patches/transformer_engine/e2m1-stochastic/probes/stubs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Two files that its CMake and CUDA's libraries have, and nothing here needs.
echo 'inline unsigned long cublasLtGetVersion() { return 0; }' >"$work/cublasLt.h"
echo 'constexpr char string_path_cuda_include[] = "";' >"$work/string_path_cuda_include.h"
common=$tree/transformer_engine/common
# As its own CMake names targets: with PTX for the bare architecture its static_assert would stop the compiler.
flags=(-x cu -O2 -std=c++17 -gencode "arch=compute_${arch#sm_},code=$arch" --expt-relaxed-constexpr -w --no-compress
  -DNDEBUG -DNVTE_BUILD_NUM_PHILOX_ROUNDS=10 -Xcompiler -fPIC -include dlfcn.h)
compile() {
  nvcc "${flags[@]}" "-I$stubs" "-I$work" "-I$tree/transformer_engine" "-I$common" "-I$common/include" -c \
    -o "$work/$(basename "$1").o" "$1"
}
for source in common.cu transformer_engine.cpp util/cuda_driver.cpp util/cuda_runtime.cpp; do
  compile "$common/$source"
done
compile "$here/kernels.cu"
nvcc -shared -cudart shared -o "$library" "$work"/*.o -ldl
