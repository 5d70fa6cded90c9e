#!/bin/bash
# The stages kernels, proof and wheel on a machine that is thrown away afterwards: many cores, root, CUDA, PyTorch in
# python3 on PATH, CMake, ninja and g++; no network and no container engine.
#   build.sh pack VLLM CUTLASS DEPS PINS DIRECTORY   here: the trees (pristine), the directory that the Dockerfile's
#                                               context deps-tree would be, pins.json of `fp4patch build --dry-run
#                                               --context`, and fp4patch with its requirements, as files
#   build.sh start DIRECTORY [NAME=VALUE...]    there: begins, and returns; the values are the Dockerfile's arguments
#   build.sh wait SECONDS                       there: progress, until the build or the time ends; logs go to $OUT, and
#                                               after the end also the first parts of the wheel
#   build.sh part N                             there: four parts of the wheel of 14 MiB go to $OUT, N from 0
# Run it from the top of the repository. wait and part have status 7 on a machine where nothing was started, and wait has
# 9 if the build died. A machine that is given back loses everything: never let it be idle, not for half a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${WHOLE_BUILD:-/opt/whole}

pack() {
  local to=$5
  mkdir -p "$to/wheels" "$to/tree/src"
  cp -a "$1" "$to/tree/src/vllm"
  cp -a "$2" "$to/tree/src/cutlass"
  cp -a "$3" "$to/tree/src/deps"
  cp "$4" "$to/pins.json"
  rm -rf "$to"/tree/src/vllm/{docs,tests,examples,benchmarks} "$to"/tree/src/cutlass/{docs,media,python,test}
  tar -C "$to/tree" --owner=0 --group=0 -cJf "$to/payload.tar.xz" .
  rm -r "$to/tree"
  python3 -m pip wheel -q --no-deps -w "$to/wheels" .
  # shellcheck disable=SC2086 # several options
  python3 -m pip download -q -d "$to/wheels" --only-binary=:all: ${PIP_PLATFORM:---python-version 3.12 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64} \
    "$(echo "$to"/wheels/fp4patch-*.whl)[disassembler]" 'setuptools<81' setuptools-scm setuptools-rust
  rm -f "$to"/wheels/numpy-*  # PyTorch's
  du -sh "$to"
}

say() { echo "=== $(($(date +%s) - began)) s: $*"; }
end() { say "END $*"; echo "$*" >"$home/done"; exit 0; }

# Everything that start leaves running. It ends with a file that says how.
build() {
  began=$(date +%s)
  export PATH=$home/bin:$PATH FP4PATCH_CACHE=/var/cache/fp4patch LANG=C.UTF-8 ONCE=$home/once
  say "$(nproc) cores, $(free -g | awk '/Mem/ {print $2}') GiB"
  nvcc --version | tail -n 2; cmake --version | head -n 1; g++ --version | head -n 1
  local venv site cuda variant='' words=() pip kernels status wheel prefetch proof tree
  for tree in "$@"; do words+=(--arg "$tree"); [ "${tree%%=*}" != VARIANT ] || variant=${tree#*=}; done
  stage() { python3 "$home/run_stages.py" "$home/Dockerfile" "$1" "${words[@]}"; }
  tar -xJf "$home/payload/payload.tar.xz" -C / || end failed: unpack
  mkdir -p /opt/vllm /opt/fp4patch/proof/receipts "$FP4PATCH_CACHE" "$ONCE" "$home/out"
  cp "$home/payload/pins.json" /opt/fp4patch/proof || end failed: pins.json
  venv=$(python3 -c 'import sys; print(sys.prefix)')
  ln -sfn "$venv" /opt/vllm/venv
  cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  ln -sfn "$cuda" /opt/fp4patch/cuda
  pip=(python3 -m pip --no-cache-dir install -q --no-index --no-deps --no-compile)
  python3 -m venv --without-pip /opt/fp4patch/venv || end failed: venv
  site=$(echo /opt/fp4patch/venv/lib/python3*/site-packages)
  "${pip[@]}" --target "$site" "$home"/payload/wheels/*.whl || end failed: fp4patch
  python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/zz-torch.pth"
  printf '#!/opt/fp4patch/venv/bin/python\nfrom fp4patch.__main__ import main\nraise SystemExit(main())\n' \
    >/opt/fp4patch/venv/bin/fp4patch
  chmod +x /opt/fp4patch/venv/bin/fp4patch
  "${pip[@]}" "$home"/payload/wheels/{setuptools,vcs_versioning,semantic_version}*.whl || end failed: setuptools
  /opt/fp4patch/venv/bin/fp4patch apply --variant "$variant" /src/vllm /src/cutlass || end failed: apply
  for tree in vllm cutlass; do
    [ ! -f "/src/$tree/.fp4patch/receipt.json" ] ||
      cp "/src/$tree/.fp4patch/receipt.json" "/opt/fp4patch/proof/receipts/$tree.json"
  done
  say "patched; the kernels and all other compilations begin"
  python3 -u "$home/prefetch.py" '/src/vllm/build/temp.*' "$(nproc)" "$home/seconds.json" "$home/drained" &
  prefetch=$!
  stage kernels && kernels=0 || kernels=$?
  say "kernels: status $kernels"
  [ -f "$home/drained.total" ] || { kill "$prefetch"; end failed: kernels; }
  until [ -f "$home/drained" ] || ! kill -0 "$prefetch" 2>/dev/null; do sleep 1; done
  say "the last compilation runs; proof and wheel begin"
  stage proof >"$home/proof.log" 2>&1 &
  proof=$!
  stage wheel && status=0 || status=$?
  say "wheel: status $status"
  wait "$prefetch" || true
  wheel=$(echo /opt/vllm/dist/*.whl)
  if [ -f "$wheel" ]; then
    (cd "$home/out" && split -b 14M -d -a 2 "$wheel" part. && { basename "$wheel"; sha256sum <"$wheel"; } >sums.new)
    mv "$home/out/sums.new" "$home/out/sums"
    python3 "$home/load.py" "$wheel" "$home/unpacked" "$home/operators.json" || say "a library does not load"
  fi
  wait "$proof" && proof=0 || proof=$?
  say "proof: status $proof"
  [ -f "$wheel" ] || end failed: no wheel
  end "kernels $kernels, wheel $status, proof $proof"
}

start() {
  [ ! -e "$home/log" ] || { echo "a build was started here already"; exit 8; }
  mkdir -p "$home/bin"
  cp -r "$1" "$home/payload"
  cp "$here"/* dockerfiles/Dockerfile tools/run_stages.py "$home"
  ln -s ../once.py "$home/bin/ccache"
  shift
  setsid -f "$home/build.sh" build "$@" >"$home/log" 2>&1 </dev/null
  sleep 10
  cat "$home/log"
}

progress() {
  [ -f "$home/log" ] || { echo "nothing was started here"; exit 7; }
  local until=$(($(date +%s) + $1)) state=0
  while [ ! -f "$home/done" ] && [ "$(date +%s)" -lt "$until" ]; do
    pgrep -f "$home/build.sh build" >/dev/null || { [ -f "$home/done" ] || state=9; break; }
    sleep 1
  done
  echo "$(find "$home/once" -name '*.done' 2>/dev/null | wc -l) of $(cat "$home/drained.total" 2>/dev/null) compiled"
  grep -aE '^(===|prefetch|stage)' "$home/log" | tail -n 12
  if [ -f "$home/done" ]; then
    echo "ended: $(cat "$home/done")"
    [ ! -f "$home/out/sums" ] || part 0
  fi
  if [ -n "${OUT:-}" ]; then
    cp "$home/log" "$OUT/build.log"
    cp "$home/once/times.jsonl" "$home/operators.json" "$OUT" 2>/dev/null || true
    tar -C /opt/fp4patch -cJf "$OUT/proof.tar.xz" proof || true  # a file may grow meanwhile
  fi
  return $state
}

part() {
  [ -f "$home/log" ] || { echo "nothing was started here"; exit 7; }
  [ -f "$home/out/sums" ] || { echo "there is no wheel yet"; exit 3; }
  local all=("$home"/out/part.*)
  local some=("${all[@]:$((4 * $1)):4}")
  cat "$home/out/sums"
  echo "${#all[@]} parts; this is group $1 of 0 to $(((${#all[@]} - 1) / 4)): ${some[*]##*/}"
  [ -z "${OUT:-}" ] || cp "${some[@]}" "$OUT/"
}

case ${1:-} in
  pack | build | start | part) "$@" ;;
  wait) progress "$2" ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
