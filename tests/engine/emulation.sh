#!/bin/bash
# Lets this machine make and run programs for arm64, by qemu and a cross compiler of Debian or Ubuntu; nothing is to do on
# arm64. Root only, before the engine starts, which asks what the machine runs. It stays until the next boot.
set -euo pipefail
[ "$(uname -m)" != aarch64 ] || exit 0
registered=/proc/sys/fs/binfmt_misc
{ command -v qemu-aarch64-static && command -v aarch64-linux-gnu-g++ && command -v arch-test; } >/dev/null ||
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    qemu-user-static g++-aarch64-linux-gnu arch-test; } >&2
mountpoint -q "$registered" || mount -t binfmt_misc none "$registered"
[ -e "$registered/qemu-aarch64" ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$registered/register"
