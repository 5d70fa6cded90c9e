"""Every CUDA toolkit on the machine, and which one is used: CUDA_HOME and CUDA_PATH, PATH, /usr/local/cuda*, wheels.

Triton brings a ptxas of its own; that one is in :mod:`fp4patch.doctor.packages`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.cuda import has
from fp4patch.core.errors import ToolchainError
from fp4patch.core.wording import listed
from fp4patch.doctor.host import Host
from fp4patch.proof.toolchain import (
    USUAL,
    find_toolchain,
    named_roots,
    roots_on_path,
    version_of,
    wheel_roots,
)

WHEELS = "wheels of this Python"


@dataclass(frozen=True)
class Toolkit:
    """A directory with ``bin/nvcc`` or ``bin/ptxas``."""

    root: Path
    place: str
    """Way in which it was found first: ``CUDA_HOME``, ``PATH``, ``/usr/local/cuda``."""
    release: str
    """What its nvcc states, or its ptxas if it has no nvcc: ``13.0.88``."""


def toolkits(host: Host) -> tuple[Toolkit, ...]:
    """Return each toolkit that runs once, in the order in which a build would meet them."""
    found: dict[Path, Toolkit] = {}
    for place, root in _roots(host):
        tool = next((tool for name in ("nvcc", "ptxas") if (tool := root / "bin" / name).is_file()), None)
        if tool is None or root.resolve() in found:
            continue
        with suppress(ToolchainError):
            found[root.resolve()] = Toolkit(root.resolve(), place, version_of(tool))
    return tuple(found.values())


def _roots(host: Host) -> Iterator[tuple[str, Path]]:
    yield from named_roots(host.environ)
    yield from (("PATH", root) for root in roots_on_path(host.environ.get("PATH", "")))
    for usual in sorted((host.root / "usr/local").glob("cuda*")):
        yield f"/{usual.relative_to(host.root)}", usual
    yield from ((WHEELS, root) for root in wheel_roots((*host.site_packages, *host.own)))


def toolkit() -> Version | None:
    """Return the CUDA release (13.0) of the compiler that verify would use; None if there is none."""
    try:
        return Version(".".join(find_toolchain().info.nvcc.split(".")[:2]))
    except ToolchainError:
        return None


def nvcc_of_builds(host: Host) -> str:
    """Return the release of the nvcc that PyTorch's build extension takes; empty if there is none."""
    kits = (kit for kit in toolkits(host) if kit.place != WHEELS and (kit.root / "bin/nvcc").is_file())
    return next((kit.release for kit in kits), "")


def examine(host: Host, gpus: Sequence[Arch] = ()) -> tuple[Finding, ...]:
    """Return a finding for each toolkit, then the host compiler of the one that fp4patch takes.

    ``gpus``: those that matter; empty where that is not known.
    """
    kits, used = toolkits(host), Path()
    try:
        chain = find_toolchain(
            environ=host.environ, site_packages=host.own or host.site_packages, usual=host.root / USUAL.relative_to("/")
        )
    except ToolchainError as error:
        last = Finding(Level.RED if kits else Level.YELLOW, "compiler", error.message, error.help)
    else:
        used = chain.root
        last = Finding(Level.GREEN, "host compiler", chain.info.host_compiler)
    return (*(_finding(kit, gpus or GPUS, used=kit.root == used) for kit in kits), last)


def _finding(kit: Toolkit, gpus: Sequence[Arch], *, used: bool) -> Finding:
    subject = f"CUDA {kit.release}"
    about = f"{kit.root} ({kit.place}{'; fp4patch uses it' if used else ''})"
    lacking = [gpu for gpu in gpus if not has(Version(kit.release), gpu)]
    if not lacking:
        return Finding(Level.GREEN, subject, about)
    first = "; a build takes the first nvcc on PATH" if kit.place == "PATH" else ""
    about = f"{about}: does not support {listed(lacking)}{first}"
    return remedies.finding(Level.YELLOW, subject, about, "toolkit_too_old")
