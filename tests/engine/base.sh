#!/bin/bash
# Debian trixie as a base image for tests, also where no registry can be reached: what the Dockerfile's BASE_IMAGE can be.
# Made once an engine; its files stay in the cache of fp4patch for 30 days, for the next one. Prints the image's name.
#   tests/engine/base.sh [arm64]    for this machine's processor, or for another one that binfmt_misc emulates
set -euo pipefail
own=$(dpkg --print-architecture)
machine=${1:-$own}
suffix=${machine#"$own"}
name=fp4patch-test-debian:trixie${suffix:+-$suffix}
exec 9>"${TMPDIR:-/tmp}/fp4patch-test-debian.lock"  # the workers of one test run ask at the same time
flock 9
if docker image inspect "$name" >/dev/null 2>&1; then echo "$name"; exit; fi
if docker pull -q --platform "linux/$machine" debian:trixie >/dev/null 2>&1; then
  docker tag debian:trixie "$name"
  echo "$name"
  exit
fi

work=$(mktemp -d)
trap 'umount "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
packed=${FP4PATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fp4patch}/debian-trixie${suffix:+-$suffix}.tar
if [ -z "$(find "$packed" -mtime -30 2>/dev/null)" ]; then
  command -v debootstrap >/dev/null ||
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap; } >&2
  # shellcheck disable=SC2016 # apt's own variables
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" {print $2; exit}')
  mkdir "$work/base"
  mount -t tmpfs -o size=2g,mode=755 none "$work/base"  # dpkg waits for the disk after each file
  debootstrap --arch="$machine" --variant=minbase trixie "$work/base" "$mirror" >&2
  echo force-unsafe-io >"$work/base/etc/dpkg/dpkg.cfg.d/no-sync"  # as in Debian's own images
  rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/*
  mkdir -p "$(dirname "$packed")"
  tar -C "$work/base" --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -cf "$packed.$$" .
  mv "$packed.$$" "$packed"
fi
docker import --platform "linux/$machine" "$packed" "$name" >/dev/null
echo "$name"
