#!/bin/bash
# A mod of spark-vllm-docker: run as root in the container before vLLM starts, without arguments; a status other than 0
# stops the launch. FlashInfer's sources, which are compiled when they are first used, are brought into the variant's
# state and proven; compiled code is judged, since nothing changes that after the fact.
#   FP4PATCH_VARIANT   the variant, next3 if it is not set
#   FP4PATCH_JIT=1     take flashinfer-jit-cache away, so that FlashInfer's sources are what runs
set -euo pipefail

mod=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$mod/site-packages # beside the container's packages, never among them: vLLM keeps its own
variant=${FP4PATCH_VARIANT:-next3}

say() { echo "[fp4patch] $1"; }
stop() {
  printf '[fp4patch] error: %s\n  help: %s\n' "$1" "$2" >&2
  exit 1
}
place() {
  python3 -c 'import sys, importlib.util as i; s = i.find_spec(sys.argv[1]); print(*(s.submodule_search_locations if s else ()))' "$1"
}
fp4patch() { PYTHONPATH=$library python3 -P -m fp4patch "$@"; }

if [ ! -d "$library/fp4patch" ]; then
  python3 -m pip --version >/dev/null 2>&1 ||
    stop "this container's python3 has no pip" "install python3-pip in the image, or in a mod that is applied before this one"
  package=$(echo "$mod"/fp4patch-*.whl)
  [ -f "$package" ] || package=fp4patch
  say "installing $(basename "$package") into $library"
  python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --root-user-action=ignore --target "$library" \
    "${package}[disassembler]" ||
    stop "fp4patch cannot be installed" "put its wheel beside run.sh, and see that the container reaches a package index for the rest"
fi

flashinfer=$(place flashinfer) compiled=$(place flashinfer_jit_cache) vllm=$(place vllm)
if [ -n "$compiled" ] && [ "${FP4PATCH_JIT:-}" = 1 ]; then
  say "taking flashinfer-jit-cache away: FlashInfer compiles what it needs when it is first used"
  python3 -m pip uninstall --quiet --disable-pip-version-check --yes --root-user-action=ignore flashinfer-jit-cache
  compiled=
fi

if [ -z "$flashinfer" ]; then
  say "no FlashInfer here: there are no sources that are compiled at run time"
elif [ -n "$compiled" ]; then
  say "flashinfer-jit-cache is what runs, and not FlashInfer's sources: nothing to patch; FP4PATCH_JIT=1 takes it away"
else
  fp4patch apply --variant "$variant" -- "$flashinfer"
  fp4patch verify --variant "$variant" --arch sm_121a --no-execute -- "$flashinfer"
fi

status=0
for package in "$compiled" "$vllm"; do
  [ -z "$package" ] || fp4patch doctor --for sm_121 -- "$package" || status=$?
done
[ "$status" = 0 ] || say "compiled code is not right for GB10, and no mod changes that: see README.md beside this file" >&2
exit "$status"
