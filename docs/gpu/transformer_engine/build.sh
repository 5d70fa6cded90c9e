#!/bin/bash
# Build a library of TransformerEngine's NVFP4 kernels for an H100, from a tree that hopper.py has changed: its own sources,
# its own host code, and kernels.cu to call them. About 75 s. Usage: build.sh TREE LIBRARY [ARCH]     (ARCH: sm_90)
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
compile() {
  nvcc -x cu -O2 -std=c++17 "-arch=$arch" --expt-relaxed-constexpr -w --no-compress -Xcompiler -fPIC -include dlfcn.h -DNDEBUG \
    -DNVTE_BUILD_NUM_PHILOX_ROUNDS=10 "-I$stubs" "-I$work" "-I$tree/transformer_engine" "-I$common" "-I$common/include" \
    -c -o "$work/$(basename "$1").o" "$1"
}
for source in "$common"/{common.cu,transformer_engine.cpp,util/cuda_driver.cpp,util/cuda_runtime.cpp} "$here/kernels.cu"; do
  compile "$source"
done
nvcc -shared -cudart shared -o "$library" "$work"/*.o -ldl
