#!/bin/sh
# Installs a wheel or an sdist of fp4patch on a bare Debian, Ubuntu or Fedora, as root, and runs what the quick start
# gives CI (docs/quickstart.md), and more. Ends with an error at the first command that does.
# Usage: tools/bare.sh FILE
set -eux
file=$(realpath "$1")
if command -v apt-get; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv g++ git ca-certificates
else
  dnf -y -q install python3 gcc-c++ git
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
PATH=$work/venv/bin:$PATH
pip install -q "$file[all]"
cd "$work"
fp4patch --version
fp4patch doctor || test $? -eq 1 # without a GPU it reports that
fp4patch fetch cutlass==4.2.1 cutlass
fp4patch apply --variant next3 cutlass
fp4patch verify --variant next3 --arch sm_120a --no-execute cutlass
fp4patch apply --variant next3 --check cutlass
fp4patch verify --variant next3 --arch sm_120a,sm_121a --no-execute --json verify.json --report verify.html cutlass
test -s verify.json -a -s verify.html
fp4patch revert cutlass
fp4patch fetch vllm==0.33.0 vllm # a source archive, where CUTLASS is a wheel
fp4patch doctor --for gb10 --cuda 13.0 --torch-cuda-arch-list 12.1a vllm
fp4patch apply --variant native vllm
fp4patch apply --variant native --check vllm
fp4patch revert vllm
