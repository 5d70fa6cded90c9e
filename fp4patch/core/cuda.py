"""Ranges of CUDA releases whose compilers support each target. No other module holds such a table."""

import re
from collections.abc import Iterable

from packaging.version import Version

from fp4patch.core.arch import Arch

# Example: Cuda compilation tools, release 13.0, V13.0.88
RELEASE = re.compile(rb"Cuda compilation tools, release \d+\.\d+, V(\d+(?:\.\d+)+)")
"""The statement of every program of the toolkit, and of what it writes; group 1 is its release: ``13.0.88``."""
FAMILIES_SINCE = Version("12.9")
"""The first CUDA release whose nvcc and ptxas have sm_121, and the ``f`` targets."""
FOR_GB10 = "13.0"
"""The CUDA release to recommend for GB10: PyTorch is published for it, and FAMILIES_SINCE is older."""

# Target → first release whose ptxas supports it, and first release that no longer does. Source: `ptxas --help` of each
# release; before 12.8, the release notes.
_PLAIN = {
    **{(5, minor): ("6.5", "13.0") for minor in (0, 2, 3)},
    **{(6, minor): ("8.0", "13.0") for minor in (0, 1, 2)},
    **{(7, minor): ("9.0", "13.0") for minor in (0, 2)},
    (7, 5): ("10.0", ""),
    (8, 0): ("11.0", ""),
    (8, 6): ("11.1", ""),
    (8, 7): ("11.4", ""),
    (8, 8): ("13.0", ""),
    (8, 9): ("11.8", ""),
    (9, 0): ("11.8", ""),
    (10, 0): ("12.8", ""),
    (10, 1): ("12.8", "13.0"),
    (10, 3): ("12.9", ""),
    (10, 7): ("13.4", ""),
    (11, 0): ("13.0", ""),
    (12, 0): ("12.8", ""),
    (12, 1): ("12.9", ""),
}
_PTX_OF = {"8.6": ("12.7", "565"), "8.7": ("12.8", "570"), "8.8": ("12.9", "575")}
_PTX_OF |= {"9.0": ("13.0", "580"), "9.1": ("13.1", "590"), "8.5": ("12.5", "555"), "8.4": ("12.4", "550")}
_PTX_OF |= {"8.3": ("12.3", "545"), "8.2": ("12.2", "535"), "8.1": ("12.1", "530"), "8.0": ("12.0", "525")}
"""PTX version → the first CUDA release that takes it, and the major version of its Linux driver: the release notes of
the PTX ISA and of the CUDA toolkit."""
_SUFFIXES_SINCE = {"": "0", "a": "12.0", "f": "12.9"}


def known_gpus() -> tuple[Arch, ...]:
    """Return every GPU that some release compiles for, by its plain architecture."""
    return tuple(Arch(major, minor) for major, minor in _PLAIN)


def of_driver(number: str) -> str:
    """Return the newest CUDA release that a Linux driver serves: ``13.0`` of ``580.95.05``; empty if not known."""
    by_major = {driver: release for release, driver in _PTX_OF.values()}
    return by_major.get(number.partition(".")[0], "")


def ptx_needs(isa: str) -> tuple[str, str]:
    """Return the first CUDA release that takes a PTX version, and its driver; the latter is empty where not known.

    From CUDA 11.0 and PTX 7.0, and from CUDA 13.0 and PTX 9.0, the minor versions are the same.
    """
    major, _, minor = isa.partition(".")
    return _PTX_OF.get(isa, (f"{int(major) + 4}.{minor}", ""))


def has(cuda: Version, arch: Arch) -> bool:
    """Return whether the compiler of a CUDA release supports a target.

    A target without a record counts as supported by releases after 13.5.
    """
    if (arch.major, arch.minor) not in _PLAIN:
        return cuda > Version("13.5")
    first, gone = _PLAIN[arch.major, arch.minor]
    since = max(Version(first), Version(_SUFFIXES_SINCE[arch.suffix]))
    return since <= cuda and not (gone and cuda >= Version(gone)) and (not arch.suffix or arch.major >= 9)


def refused(cuda: Version, archs: Iterable[Arch]) -> str:
    """Return the reason why the compiler of a CUDA release rejects these targets; empty if it supports them all."""
    missing = next((arch for arch in archs if not has(cuda, arch)), None)
    return f"the nvcc of CUDA {cuda} does not support compute_{missing.number}" if missing else ""
