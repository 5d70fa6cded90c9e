"""Packages beside FlashInfer that a list names: what each is for, and whether its release is FlashInfer's.

``flashinfer/jit/env.py`` compares the releases when it is imported, and raises an error if they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import InvalidVersion, Version

from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.arch import Arch
from fp4patch.doctor.inputs import Release

_FLASHINFER = "flashinfer-python"
# Example: flashinfer-jit-cache-sm121a
_COMPANION = re.compile(r"flashinfer-(?:cubin|jit-cache(?:-sm(?P<target>\d+[af]?))?)")
_EXACT = Version("0.7")
"""From this release on flashinfer-jit-cache has FlashInfer's release; before, its release begins with it."""


def is_companion(project: str) -> bool:
    """Return whether a package, by its normalized name, is one of FlashInfer's companions."""
    return _COMPANION.fullmatch(project) is not None


def finding(release: Release, place: str, gpus: Sequence[Arch]) -> Finding:
    """Return what is known of a companion: not which code its wheel has, but what it is for."""
    subject = f"{release.project}=={release.written}" if release.written else release.project
    found = _COMPANION.fullmatch(release.project)
    target = found["target"] if found else None
    if release.project == "flashinfer-cubin":
        why = "it has cubins that FlashInfer loads on SM100, and none that it needs on SM12x"
        return Finding(Level.NONE, subject, f"{place}: not judged, {why}", f"name FlashInfer: {_FLASHINFER}==VERSION")
    if target and not any(Arch.parse(f"sm_{target}").runs_on(gpu) for gpu in gpus):
        why = f"it has kernels for sm_{target}, and none for {', '.join(map(str, gpus))}"
    else:
        why = "it has FlashInfer's kernels as they were compiled, and is not on the package index"
    return Finding(Level.NONE, subject, f"{place}: not judged, {why}", "name its wheel, or the Python that has it")


def mismatches(releases: Sequence[Release]) -> Iterator[Finding]:
    """Yield each companion whose release ends FlashInfer's import, where a list pins both for one processor."""
    for own in (one for one in releases if one.project == _FLASHINFER and one.written):
        for other in (one for one in releases if is_companion(one.project) and one.written):
            if set(own.machines) & set(other.machines) and not _fit(own.written, other):
                found = f"line {other.line}: FlashInfer {own.written} ends at its import beside {other.written}"
                help_text = f"pin both to one release: {other.project}=={own.written}"
                yield Finding(Level.RED, f"{other.project}=={other.written}", found, help_text)


def _fit(flashinfer: str, other: Release) -> bool:
    try:
        own, version = Version(flashinfer), Version(other.written)
    except InvalidVersion:
        return True
    if other.project != "flashinfer-cubin" and own < _EXACT:
        return str(version).startswith(own.public)
    return own.public == version.public
