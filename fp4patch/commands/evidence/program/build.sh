#!/bin/sh
# Builds the program for this machine: it needs a C compiler, and nothing of CUDA.
set -eu
cd "$(dirname "$0")"
"${CC:-cc}" -O2 -std=c11 -Wall -Wl,--as-needed -x c -o "${1:-fp4patch-evidence}" evidence.c -ldl
