#!/bin/bash
# Makes every golden listing here again, with nvcc and nvdisasm of the toolkit in $1 (default: the one on PATH).
set -euo pipefail
cd "$(dirname "$0")"
tools=${1:+$1/bin/}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

listing() { # source, architecture
  "${tools}nvcc" -cubin -arch="$2" -std=c++17 -O3 -o "$work/probe.cubin" "$1.cu"
  "${tools}nvdisasm" -c "$work/probe.cubin" > "$1.$2.txt"
}
listing branches sm_87
listing branches sm_90
listing branches sm_121a
listing e2m1 sm_120a
listing e2m1 sm_121a
listing spills sm_90

# CUDA 12's disassemblers are not on the package index. What they print around the same instructions: the ELF flags by
# name instead of .target, and the registers of the section.
sed -e 's/^\t\.target\tsm_90$/\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"/' \
  -e 's/^\t\.align\t128$/\t.sectioninfo\t@"SHI_REGISTERS=24"\n&/' branches.sm_90.txt > branches.cuda12-form.txt

# With the encodings beside the instructions.
"${tools}nvcc" -cubin -arch=sm_121a -std=c++17 -O3 -o "$work/probe.cubin" e2m1.cu
"${tools}nvdisasm" -c -hex "$work/probe.cubin" > e2m1-hex.sm_121a.txt
