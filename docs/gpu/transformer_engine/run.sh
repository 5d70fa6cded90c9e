#!/bin/bash
# The checks on a GPU of docs/evidence.md: TransformerEngine's NVFP4 kernels in their software form against
# a model in NumPy, their bandwidth, and a small training. Needs two git checkouts of one release, of which
# `fp4patch apply --variant next3` patched the second, the nvcc on PATH, an H100, and Python with PyTorch. Four minutes,
# of which half compile. Usage: run.sh PRISTINE PATCHED OUT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$3"
for tree in "$1" "$2"; do
  copy=$work/$([[ $tree == "$1" ]] && echo pristine || echo patched)
  cp -r "$tree" "$copy"
  python "$here/hopper.py" "$copy"
  "$here/build.sh" "$copy" "$copy.so"
done
export PYTHONPATH=$here/../../..:$here/..
python "$here/check.py" "$work/patched.so" "$work/pristine.so" "$3"
python "$here/train.py" "$work/patched.so" "$3"
