#!/bin/bash
# A throw-away Docker engine with BuildKit and buildx for the tests of images, out of Debian's own packages.
#   eval "$(tests/engine/engine.sh start)"    starts it, or finds it running, and prints what a client needs
#   tests/engine/engine.sh stop               ends it; what it built stays
# Root only. Containers have no network of their own, so that nothing of this machine's is changed: builds use
# --network host. FP4PATCH_ENGINE_DIR: where it lives (default: fp4patch-engine in TMPDIR).
# Exit status 77, with the reason on stderr: no engine can run on this machine.
set -euo pipefail
home=${FP4PATCH_ENGINE_DIR:-${TMPDIR:-/tmp}/fp4patch-engine}
suite=sid  # bookworm has no buildx, and that of trixie no --check
prefix=$home/prefix data=$home/overlay2/data run=$home/overlay2/run socket=$home/overlay2/run/docker.sock

cannot() { echo "no container engine: $*" >&2; exit 77; }

# The engine's packages, unpacked into a directory: nothing is installed. apt checks their signatures.
unpack() {
  [ ! -x "$prefix/usr/sbin/dockerd" ] || return 0
  local mirror apt=$home/apt
  # shellcheck disable=SC2016 # apt's own variables
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" {print $2; exit}')
  [ -n "$mirror" ] || cannot "apt knows no Debian archive; run apt-get update"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$prefix"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
  : >"$apt/status"
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o "Dir::State::lists=$apt/lists"
    -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >&2 || cannot "the package index of Debian $suite cannot be had"
  (cd "$apt" && apt-get "${options[@]}" download docker.io docker-cli docker-buildx containerd >&2) ||
    cannot "the packages of Debian $suite cannot be had"
  for package in "$apt"/*.deb; do dpkg -x "$package" "$prefix"; done
  rm -rf "$apt"
}

answers() { curl -fs --unix-socket "$socket" http://engine/_ping >/dev/null 2>&1; }

start() {
  [ "$(id -u)" = 0 ] || cannot "not root"
  command -v apt-get >/dev/null || cannot "not a Debian system"
  grep -qw overlay /proc/filesystems || cannot "the kernel has no overlay file system"
  [ -f /sys/fs/cgroup/cgroup.controllers ] || [ -d /sys/fs/cgroup/memory ] || cannot "no cgroup file system is mounted"
  if ! command -v runc iptables curl >/dev/null || ! command -v runc >/dev/null; then
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
      runc iptables curl; } >&2 || cannot "runc cannot be installed"
  fi
  mkdir -p "$run" "$home/config/cli-plugins"
  exec 9>"$home/lock"  # the workers of one test run start at the same time
  flock 9
  unpack
  ln -sf "$prefix/usr/libexec/docker/cli-plugins/docker-buildx" "$home/config/cli-plugins/"
  if ! answers; then
    end "$home/overlay2"
    mkdir -p "$run"
    local options=(--data-root "$data" --exec-root "$run/exec" --pidfile "$run/pid" -H "unix://$socket"
      --bridge=none --iptables=false --ip6tables=false --storage-driver overlay2)
    PATH=$prefix/usr/sbin:$prefix/usr/bin:$PATH setsid nohup dockerd "${options[@]}" >"$run/log" 2>&1 </dev/null 9>&- &
    local daemon=$!
    until answers; do
      kill -0 "$daemon" 2>/dev/null || { tail -n 5 "$run/log" >&2; cannot "dockerd ended as it started"; }
      sleep 0.2
    done
  fi
  echo "export DOCKER_HOST=unix://$socket DOCKER_CONFIG=$home/config PATH=$prefix/usr/bin:\$PATH FP4PATCH_ENGINE_NETWORK=host"
}

# Ends an engine, and clears what one that was killed leaves: mounts, and the names of processes that are others' by now.
end() {
  local here=$1 daemon mounted
  daemon=$(cat "$here/run/pid" 2>/dev/null || echo none)
  if [ "$(cat "/proc/$daemon/comm" 2>/dev/null)" = dockerd ]; then
    kill "$daemon" 2>/dev/null || true
    while kill -0 "$daemon" 2>/dev/null; do sleep 0.2; done
  fi
  for mounted in "$here/data" "$here"/run/exec/netns/*; do  # containers on the host's network leave the latter
    ! mountpoint -q "$mounted" || umount "$mounted"
  done
  rm -rf "$here/run"
}

case ${1:-} in
  start) start ;;
  stop) end "$home/overlay2" ;;
  *) echo "usage: engine.sh start|stop" >&2; exit 2 ;;
esac
