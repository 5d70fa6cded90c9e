"""Caches of kernels that were compiled at run time: for which architectures, and by which release.

known.toml lists them. An entry for another
architecture, or of another release than the one that is installed, is stale: at best it only takes room.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError
from fp4patch.inspect import elf
from fp4patch.inspect.findings import Finding, Level
from fp4patch.inspect.known import known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.commands.doctor.surroundings import Surroundings
    from fp4patch.inspect.known import KernelCache

_MOST = 20_000
"""Entries of one cache that are read."""
_LARGEST = 1 << 26
"""Bytes of one entry."""
_ARCHS = re.compile(r"\d{2,3}[af]?(_\d{2,3}[af]?)*")


def examine(s: Surroundings, gpus: Sequence[Arch]) -> tuple[Finding, ...]:
    """Return a finding for each cache that has entries. ``gpus``: those that matter; empty where that is not known."""
    return tuple(
        finding
        for one in known().cache
        if (folder := _directory(s, one)).is_dir() and (finding := _examine(s, one, folder, gpus))
    )


def _directory(s: Surroundings, one: KernelCache) -> Path:
    usual = one.directory.format(user=s.home.name)
    place = s.home / usual[2:] if usual.startswith("~/") else s.root / usual[1:]
    return Path(s.environ.get(one.variable) or place) / one.below


def _examine(s: Surroundings, one: KernelCache, folder: Path, gpus: Sequence[Arch]) -> Finding | None:
    archs, releases, number = Counter[Arch](), Counter[str](), 0
    for file in islice((path for path in sorted(folder.rglob("*")) if path.is_file()), _MOST):
        found = _entry(file, folder)
        if found:
            number += 1
            archs.update(found[0])
            releases.update([found[1]] if found[1] else [])
    if not number:
        return None
    installed = s.distribution(one.distribution) if one.distribution else None
    foreign = [arch for arch in sorted(archs) if gpus and not any(arch.runs_on(gpu) for gpu in gpus)]
    older = sorted(release for release in releases if installed and release != installed.version)
    stale = [f"{sum(archs[arch] for arch in foreign)} for {', '.join(map(str, foreign))}"] if foreign else []
    stale += [f"{sum(releases[release] for release in older)} by release {', '.join(older)}"] if older else []
    what = f"{number} compiled kernels in {folder}"
    if not stale:
        return Finding(Level.GREEN, f"cache of {one.program}", what)
    return Finding(Level.YELLOW, f"cache of {one.program}", f"{what}; stale: {'; '.join(stale)}", f"rm -r {folder}")


def _entry(file: Path, folder: Path) -> tuple[list[Arch], str] | None:
    """Return the architectures of a compiled kernel and the release that compiled it; None of other files."""
    try:
        if file.suffix == ".so":
            parts = file.relative_to(folder).parts
            archs = next((part for part in parts if _ARCHS.fullmatch(part)), "")
            return [Arch.parse(f"sm_{one}") for one in archs.split("_") if one], next(filter(_is_version, parts), "")
        if file.stat().st_size > _LARGEST:
            return None
        if file.suffix == ".cubin" and not file.with_suffix(".json").is_file():
            return [elf.parse(file.read_bytes(), file.name).arch], ""
        if file.suffix == ".json":  # Triton's
            stated = json.loads(file.read_bytes())
            number = stated["target"]["arch"]
            suffix = "a" if number >= 90 else ""
            return [Arch.parse(f"sm_{number}{suffix}")], str(stated.get("triton_version", ""))
    except (OSError, ValueError, KeyError, TypeError, BinaryError):
        return None
    return None


def _is_version(text: str) -> bool:
    try:
        return "." in text and bool(Version(text))
    except InvalidVersion:
        return False
