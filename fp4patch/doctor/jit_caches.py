"""Caches of kernels that were compiled at run time: for which architectures, and by which release.

known.toml lists them. An entry for another
architecture, or of another release than the one that is installed, is stale: at best it only takes room.
"""

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from fp4patch.binaries import elf, remedies
from fp4patch.binaries.fatbin import CONTAINER
from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import KernelCache, known
from fp4patch.core.arch import Arch
from fp4patch.core.errors import BinaryError
from fp4patch.core.release import is_version
from fp4patch.doctor.host import Host

_MOST = 20_000
"""Entries of one cache that are read."""
_LARGEST = 1 << 26
"""Bytes of one entry that are read."""
_Entry = tuple[list[Arch], str]
_ARCHS = re.compile(r"\d{2,3}[af]?(_\d{2,3}[af]?)*")


def examine(host: Host, gpus: Sequence[Arch]) -> tuple[Finding, ...]:
    """Return a finding for each cache that has entries. ``gpus``: those that matter; empty where that is not known."""
    seen = set[Path]()  # one program may keep its cache inside another's, and links are no second kernel
    return tuple(
        finding
        for one in known().cache
        if (folder := _directory(host, one)).is_dir() and (finding := _examine(host, one, folder, gpus, seen))
    )


def _directory(host: Host, one: KernelCache) -> Path:
    usual = one.directory.format(user=host.home.name)
    place = host.home / usual[2:] if usual.startswith("~/") else host.root / usual[1:]
    return Path(host.environ.get(one.variable) or place) / one.below


def _examine(host: Host, one: KernelCache, folder: Path, gpus: Sequence[Arch], seen: set[Path]) -> Finding | None:
    found = []
    for file in islice((path for path in sorted(folder.rglob("*")) if path.is_file()), _MOST):
        same = file.resolve()
        if same not in seen and (entry := _entry(file, folder)):
            seen.add(same)
            found.append(entry)
    if not found:
        return None
    installed = host.distribution(one.distribution) if one.distribution else None
    foreign = [archs for archs, _ in found if archs and gpus and not any(a.runs_on(gpu) for a in archs for gpu in gpus)]
    older = [release for _, release in found if installed and release and release != installed.version]
    others = ", ".join(map(str, sorted({arch for archs in foreign for arch in archs})))
    stale = [f"{len(foreign)} for {others}"] if foreign else []
    stale += [f"{len(older)} by release {', '.join(sorted(set(older)))}"] if older else []
    what = f"{len(found)} compiled kernels in {folder}"
    if not stale:
        return Finding(Level.GREEN, f"cache of {one.program}", what)
    what += f"; stale: {'; '.join(stale)}"
    return remedies.finding(Level.YELLOW, f"cache of {one.program}", what, "stale_kernels", directory=folder)


def _entry(file: Path, folder: Path) -> _Entry | None:
    """Return the architectures of a compiled kernel and the release that compiled it; None of other files."""
    try:
        return _READERS[file.suffix](file, file.relative_to(folder).parts) if file.suffix in _READERS else None
    except (OSError, ValueError, KeyError, TypeError, BinaryError):
        return None


def _library(file: Path, parts: Sequence[str]) -> _Entry | None:
    """Read the names of FlashInfer's directories. A library elsewhere without device code is a launcher."""
    archs = next((part for part in parts if _ARCHS.fullmatch(part)), "")
    if not archs and CONTAINER not in _content(file):
        return None
    version = next((part for part in parts if "." in part and is_version(part)), "")
    return [Arch.parse(f"sm_{one}") for one in archs.split("_") if one], version


def _cubin(file: Path, _: Sequence[str]) -> _Entry | None:
    """Read a cubin, unless Triton's description of it counts."""
    return None if file.with_suffix(".json").is_file() else ([elf.parse(_content(file), file.name).arch], "")


def _described(file: Path, _: Sequence[str]) -> _Entry | None:
    stated = json.loads(_content(file))
    number = stated["target"]["arch"]
    return [Arch.parse(f"sm_{number}{'a' if number >= 90 else ''}")], str(stated.get("triton_version", ""))


_READERS = {".so": _library, ".cubin": _cubin, ".json": _described}


def _content(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_LARGEST)
