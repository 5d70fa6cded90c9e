"""Every CUDA compiler and assembler on the machine, whether the parts of one toolkit agree, and which one is used.

Looked at: PATH, CUDA_HOME and CUDA_PATH, /usr/local/cuda*, NVIDIA's wheels. Triton brings a ptxas of its own; that one
is in :mod:`fp4patch.doctor.packages`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.cuda import FAMILIES_SINCE, has
from fp4patch.core.errors import ToolchainError
from fp4patch.core.wording import listed
from fp4patch.doctor.host import Host
from fp4patch.proof.toolchain import (
    INSTALL,
    USUAL,
    find_toolchain,
    named_roots,
    newest_gcc,
    release,
    roots_on_path,
    stated_version,
    version_of,
    wheel_roots,
)


@dataclass(frozen=True)
class Toolkit:
    """A directory with ``bin/nvcc`` or ``bin/ptxas``, and the releases that its parts report."""

    root: Path
    places: tuple[str, ...]
    """Ways in which it was found: ``CUDA_HOME``, ``PATH``, ``/usr/local/cuda``."""
    parts: dict[str, str]
    """nvcc, cicc, ptxas → version; a part that is not there is left out."""
    broken: tuple[str, ...] = ()
    """Parts that are there and do not run."""

    @property
    def releases(self) -> set[tuple[int, ...]]:
        """13.0.88 is of release (13, 0); parts of one release fit each other."""
        return {release(version) for version in self.parts.values()}


def toolkits(host: Host) -> tuple[Toolkit, ...]:
    """Return each toolkit once, in the order in which a build would meet them."""
    found: dict[Path, list[str]] = {}
    for place, root in _roots(host):
        if any((root / "bin" / tool).is_file() for tool in ("nvcc", "ptxas")):
            found.setdefault(root.resolve(), []).append(place)
    return tuple(_toolkit(root, tuple(dict.fromkeys(places))) for root, places in found.items())


def _roots(host: Host) -> Iterator[tuple[str, Path]]:
    yield from named_roots(host.environ)
    with suppress(ToolchainError):  # a script in the place of nvcc; the search for the one to use reports it
        yield from (("PATH", root) for root in roots_on_path(host.path))
    for usual in sorted((host.root / "usr/local").glob("cuda*")):
        yield f"/{usual.relative_to(host.root)}", usual
    yield from (("wheels of this Python", root) for root in wheel_roots((*host.site_packages, *host.own)))


def _toolkit(root: Path, places: tuple[str, ...]) -> Toolkit:
    parts, broken = {}, []
    for name, tool, ask in (
        ("nvcc", root / "bin/nvcc", version_of),
        ("cicc", root / "nvvm/bin/cicc", stated_version),
        ("ptxas", root / "bin/ptxas", version_of),
    ):
        if tool.is_file():
            try:
                parts[name] = ask(tool)
            except ToolchainError as error:
                broken.append(f"{name}: {error.message}")
    return Toolkit(root, places, parts, tuple(broken))


def examine(host: Host, gpus: Sequence[Arch] = ()) -> tuple[Finding, ...]:
    """Return a finding for each toolkit, then which one fp4patch takes, and the host compiler.

    ``gpus``: those that matter; empty where that is not known.
    """
    found = toolkits(host)
    used: Path | None = None
    try:
        chain = find_toolchain(
            environ=host.environ, site_packages=host.own or host.site_packages, usual=host.root / USUAL.relative_to("/")
        )
    except ToolchainError as error:
        if not found:
            why, level = "no nvcc and no ptxas: nothing can be compiled or verified here", Level.YELLOW
        else:
            why, level = error.message, Level.RED
        verdict = [Finding(level, "compiler", why, error.help)]
    else:
        used = chain.root
        info, newest = chain.info, newest_gcc(chain.root)
        limit = f"; this toolkit supports g++ up to {newest}" if newest else ""
        verdict = [
            Finding(Level.GREEN, "host compiler", info.host_compiler + limit),
            Finding(Level.GREEN, "disassembler", f"nvdisasm {info.nvdisasm}"),
        ]
    return (*(_finding(kit, gpus, used=kit.root == used) for kit in found), *_wrappers(host), *verdict)


def _wrappers(host: Host) -> Iterator[Finding]:
    """Yield a finding for each script in the place of nvcc that does not lead to a toolkit: a build would take it."""
    for folder in host.path.split(os.pathsep):
        try:
            list(roots_on_path(folder))
        except ToolchainError as error:
            yield Finding(Level.YELLOW, "nvcc", error.message, error.help)


def _finding(kit: Toolkit, gpus: Sequence[Arch], *, used: bool) -> Finding:
    place = ", ".join(kit.places)
    versions = ", ".join(f"{name} {version}" for name, version in kit.parts.items())
    subject = f"CUDA {'.'.join(str(p) for p in min(kit.releases))}" if kit.releases else "CUDA"
    what = f"{versions} ({place}){'; fp4patch uses it' if used else ''}"
    if kit.broken:
        level = Level.RED if used else Level.YELLOW
        return remedies.finding(level, subject, f"{'; '.join(kit.broken)} ({place})", "toolkit_broken")
    if len(kit.releases) > 1:
        why = f"{what}: its parts are of different releases and misread each other's files"
        return remedies.finding(Level.RED, subject, why, "toolkit_mixed", install=INSTALL)
    if min(kit.releases) < FAMILIES_SINCE.release:
        first = "" if "PATH" not in kit.places else "; a build takes the first nvcc on PATH"
        lacking = [str(gpu) for gpu in gpus if not has(Version(".".join(map(str, min(kit.releases)))), gpu)]
        about = f"{what}: does not support {listed(lacking) if lacking else 'sm_121 or f targets'}{first}"
        if gpus and GB10 not in gpus and has(Version(".".join(map(str, min(kit.releases)))), Arch(12, 0, "a")):
            return Finding(Level.GREEN, subject, f"{about}; it supports sm_120a")
        return remedies.finding(Level.YELLOW, subject, about, "toolkit_too_old")
    return Finding(Level.GREEN, subject, what)
