#!/bin/bash
# The sweeps of docs/evidence.md on this machine's GPU, by the nvcc on PATH. Needs a pristine
# CUTLASS and one that `fp4patch apply --variant next3` patched. A minute in all, compilation included.
# Usage: docs/gpu/run.sh PRISTINE PATCHED [ARCH]     (ARCH: sm_90)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pristine=$1 patched=$2 arch=${3:-sm_90}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -O3 -std=c++17 "-arch=$arch" "-I$here/../../encoders" -o "$work/stochastic" "$here/stochastic.cu"
"$work/stochastic"
convert() {
  nvcc -O3 -std=c++17 -w --expt-relaxed-constexpr "-arch=$arch" "${@:3}" "-I$2/include" -o "$work/conversions" "$here/conversions.cu"
  "$work/conversions" "$1"
}
convert pristine "$pristine"
convert patched "$patched"
convert "patched, -use_fast_math" "$patched" -use_fast_math
