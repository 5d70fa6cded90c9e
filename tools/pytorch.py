"""What each release of PyTorch takes in TORCH_CUDA_ARCH_LIST, read from its wheel, for records/known.toml."""

import ast
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from fp4patch.core.errors import SourceError
from fp4patch.doctor.known_defects import RECORD, PytorchRelease, read
from fp4patch.sources import index
from fp4patch.sources.wheels import published

PROJECT = "torch"
EXTENSIONS = "torch/utils/cpp_extension.py"
CMAKE = "torch/share/cmake/Caffe2/Modules_CUDA_fix/upstream/FindCUDA/select_compute_arch.cmake"
_SUFFIXES = re.compile(r"\^\(\[0-9\]\+\\\\\.\[0-9\](?:\[([a-z]+)\]|([a-z]))\?")
"""The pattern of an architecture in that file, whose group has the suffixes."""
_LAST = re.compile(r'^until = "[^"]*"$', re.MULTILINE)


class Taken(NamedTuple):
    """What one release takes."""

    extensions: tuple[str, ...]
    """Elements from 9.0 on that its module for a setup.py takes, as they are written there."""
    cmake: str
    """Suffixes that its CMake file takes."""


def taken(extensions: str, cmake: str) -> Taken:
    """Return what the texts of both files take. SourceError: they do not state it as the releases so far do."""
    lists = [
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(extensions))
        if isinstance(node, ast.Assign) and [getattr(name, "id", "") for name in node.targets] == ["supported_arches"]
    ]
    suffixes = {first or second for first, second in _SUFFIXES.findall(cmake)}
    if len(lists) != 1 or len(suffixes) != 1:
        where = EXTENSIONS if len(lists) != 1 else CMAKE
        raise SourceError(f"{where} states its architectures otherwise", help=f"read it, and see {RECORD}")
    return Taken(tuple(arch for arch in lists[0] if float(arch.rstrip("af")) >= 9), suffixes.pop())


def releases() -> list[str]:
    """Return the releases on the package index that have a wheel, the oldest first."""
    with index.project_files(PROJECT) as (files, _):
        named = {file.version for file in files if file.version and file.package_type == "wheel" and not file.is_yanked}
    found = (Version(version) for version in named)
    return [str(version) for version in sorted(found) if not (version.is_prerelease or version.local)]


def of_wheel(release: str) -> Taken:
    """Return what a release takes, by its wheel for x86-64."""
    with published(f"{PROJECT}=={release}", "x86_64") as (_, content, _), zipfile.ZipFile(content) as wheel:
        return taken(*(wheel.read(name).decode() for name in (EXTENSIONS, CMAKE)))


def differs(row: PytorchRelease, found: Taken) -> bool:
    """Return whether a release takes something else than a row of the record says."""
    return {arch.torch for arch in row.extensions} != {*found.extensions} or {*row.cmake} != {*found.cmake}


def look(root: Path) -> Iterator[tuple[str, str]]:
    """Read each release that is newer than the last one of the record; yield it with what a person must decide.

    Releases up to the first that takes something else are recorded as the last one read.
    """
    last = read(root).pytorch[-1]
    for release in releases():
        if Version(release) <= Version(last.until):
            continue
        found = of_wheel(release)
        if differs(last, found):
            row = f'since = "{release}", extensions = {json.dumps(list(found.extensions))}, cmake = "{found.cmake}"'
            yield (
                release,
                f"it takes other architectures: {RECORD} needs a row [[pytorch]] with {row}, until = {release}",
            )
            return
        text = (root / RECORD).read_text(encoding="utf-8")
        *_, place = _LAST.finditer(text)
        text = f'{text[: place.start()]}until = "{release}"{text[place.end() :]}'
        (root / RECORD).write_text(text, encoding="utf-8")
        read.cache_clear()
