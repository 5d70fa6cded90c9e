"""Lists of packages that people have: requirements.txt, ``pip freeze``, ``pip list``, ``conda list``, environment.yml.

A list is recognised by its content. Each reader gives the same: the packages, which release of each is pinned and
where, and otherwise why its wheel cannot be known.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

LOCAL = "a local version, which the package index does not have"
ELSEWHERE = "not from the package index"
CONDA = "conda's own build, whose code may differ from the wheel's"
UNPINNED = "no exact version"
INDEX = "the list names another index, whose wheel may be another one"
CONDITION = "installed under a condition only"
MACHINES = ("x86_64", "aarch64")
ABSENT = "it cannot be read as a list from here"
_MOST = 32
"""Lists that a list names, and those that these name."""
LARGEST = 1 << 20
"""Characters of a list that are read."""
_PYTHONS = range(9, 15)
"""Minor releases of Python 3 for which a marker is evaluated."""

_NAMED = re.compile(r".*(requirements|constraints|freeze).*\.txt", re.IGNORECASE)
"""Names that say that a file is a list of requirements, if it has a single one."""
_COMMENT = re.compile(r"(^|\s)#.*")
# Example: --extra-index-url https://example.com/simple
_OPTION = re.compile(r"--?[A-Za-z][\w-]*(?:[= ]\S.*)?|-[rcief]\S.*")
# Example: --extra-index-url
_INDEX = re.compile(r"(-i|--index-url|--extra-index-url|-f|--find-links|--no-index)(?![\w-])")
# Example: --requirement other.txt
_OTHER = re.compile(r"(-r|--requirement|-c|--constraint)[= ]?\s*(\S+)")
# This index has FlashInfer's packages alone, and of flashinfer-python the same wheel.
# Example: --extra-index-url https://flashinfer.ai/whl/cu130
_OF_FLASHINFER = re.compile(r"--extra-index-url[= ]\s*https://flashinfer\.ai/whl\S*")
# Example:  --hash=sha256:0123
_OF_REQUIREMENT = re.compile(r"\s+--[a-z-]+[= ].*")
# Example: git+https://example.com/owner/name.git@v1#egg=name
_ADDRESS = re.compile(r"(?:[a-z+]+:|\.{0,2}/)\S*|\S+\.whl")
# Example: # Name                    Version                   Build  Channel
_CONDA_HEAD = re.compile(r"#?\s*Name\s+Version\s+Build\b.*")
# Example: Package    Version   Editable project location
_PIP_HEAD = re.compile(r"Package\s+Version\b.*")
# Example: vllm    0.11.0    pypi_0    pypi
_ROW = re.compile(r"([A-Za-z_][\w.-]*)\s+(\d[\w.+!-]*)(?:\s+(\S.*))?")
# Example: vllm=0.11.0=pypi_0
_EXPORTED = re.compile(r"([A-Za-z_][\w.-]*)=(\d[\w.+!-]*)=(\w\S*)")
# Example: conda-forge::vllm>=0.11=cuda*
_CONDA_SPEC = re.compile(r"(?:\S+::)?([A-Za-z_][\w.-]*)(?:[\s=<>!~\[].*)?")


@dataclass(frozen=True)
class Release:
    """One package of a list."""

    project: str
    version: str
    """Exact version; empty if the list names none, or if its wheel cannot be known."""
    line: int
    why: str = ""
    """Why there is no version."""
    machines: tuple[str, ...] = MACHINES
    """Processors for which it is installed."""
    of: str = ""
    """What installs it, if the file is no list: ``FROM vllm/vllm-openai:v0.15.1``."""
    image: str = ""
    """Image that holds it; empty if none does."""
    written: str = ""
    """Exact version as the list has it, with its local part, also where the wheel cannot be known."""
    file: str = ""
    """File that has the line, if it is one that the list names by ``-r``."""
    is_wanted: bool = False
    """True if a project wants it, which is no list of packages alone."""
    is_built: bool = False
    """True if it is compiled from its source."""
    arch_list: str = ""
    """Architectures for which it is compiled; empty: none are set."""
    cuda: str = ""
    """CUDA release that compiles it; empty: not known."""


def read(name: str, text: str) -> tuple[Release, ...] | None:
    """Return the packages of a list, each under its normalized name; None: the text is no such list."""
    if PurePath(name).suffix in (".yml", ".yaml"):
        return _environment(text)
    return (
        _table(text)
        or _export(text)
        or _requirements(text.splitlines(), named=bool(_NAMED.fullmatch(PurePath(name).name)), path=name)
    )


def _table(text: str) -> tuple[Release, ...] | None:
    """Return the packages of ``conda list`` or ``pip list``."""
    lines = text.splitlines()
    begins = (n for n, line in enumerate(lines) if _CONDA_HEAD.fullmatch(line) or (line.strip() and line[0] != "#"))
    head = next(begins, len(lines))
    is_conda = head < len(lines) and bool(_CONDA_HEAD.fullmatch(lines[head]))
    if not is_conda and not (head < len(lines) and _PIP_HEAD.fullmatch(lines[head])):
        return None
    found = []
    for number, line in enumerate(lines[head + 1 :], head + 2):
        if not line.strip(" -") or line.startswith("#"):
            continue
        row = _ROW.fullmatch(line.strip())
        if not row:
            return None
        of_conda = is_conda and (row[3] or "").split()[-1:] != ["pypi"]
        why = CONDA if of_conda else ELSEWHERE if row[3] and not is_conda else ""
        found.append(release_of(row[1], row[2], number, why))
    return tuple(found) or None


def _export(text: str) -> tuple[Release, ...] | None:
    """Return the packages of ``conda list --export``."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    rows = [(number, _EXPORTED.fullmatch(line)) for number, line in lines if not line.startswith("#")]
    if not rows or not all(row for _, row in rows):
        return None
    return tuple(
        release_of(row[1], row[2], number, "" if row[3].startswith("pypi") else CONDA) for number, row in rows if row
    )


def _requirements(lines: Sequence[str], *, named: bool, first: int = 1, path: str = "") -> tuple[Release, ...] | None:
    """Return the packages of a requirements.txt; of one without such a name, if two have a release or address.

    ``path``: that of the list, from whose directory others are named.
    """
    indexes, pinned = list[str](), list[Release]()
    found = _of_lines(lines, first, _Lists(path, indexes, pinned), path)
    if found is None:
        return None
    telling = [one for one in found if one.why != UNPINNED]
    if not found or not (named or len(telling) > 1):
        return None
    pins = {one.project: one for one in pinned if one.version}
    found = [_as_pinned(one, pins.get(one.project)) for one in found]
    return tuple(_of_other_indexes(found, indexes))


def _as_pinned(release: Release, pin: Release | None) -> Release:
    """Return a release without an exact version as a constraint has it that holds wherever it is installed."""
    if pin is None or release.why != UNPINNED or not set(release.machines) <= set(pin.machines):
        return release
    return replace(release, version=pin.version, written=pin.written, why="")


@dataclass
class _Lists:
    """Lists that are read together, from the first one on."""

    path: str
    """That of the first; empty or ``-``: it has none."""
    indexes: list[str]
    pinned: list[Release]
    """Releases of constraints."""
    seen: set[Path] = field(default_factory=set)


def _of_lines(lines: Sequence[str], first: int, lists: _Lists, path: str) -> list[Release] | None:
    """Return the packages of a list and of those that it names; None: the lines are no list."""
    found: list[Release] = []
    for number, line in _logical(lines, first):
        if _OPTION.fullmatch(line):
            lists.indexes += [line] if _INDEX.match(line) else []
            if other := _OTHER.fullmatch(line):
                own = _of_other(other[2], number, lists, path)
                (lists.pinned if other[1] in ("-c", "--constraint") else found).extend(own)
            if editable := re.fullmatch(r"(?:-e|--editable)[= ]?\s*(\S+)", line):
                found.append(_addressed(editable[1], number))
            continue
        release = requirement(_OF_REQUIREMENT.sub("", line), number)
        if release is None:
            return None
        found.append(release)
    return found


def _of_other(name: str, line: int, lists: _Lists, path: str) -> list[Release]:
    """Return the packages of a list that another one names, each with its file; one without a release if it is not
    read, and nothing of one that was read before."""
    missing = [Release(name, "", line, ABSENT)]
    if lists.path in ("", "-"):
        return missing
    try:
        place = (Path(path).parent / name).resolve()
        begin = Path(lists.path).resolve()
        if place in lists.seen or place == begin:
            return []
        if not place.is_file() or len(lists.seen) >= _MOST:
            return missing
        lists.seen.add(place)
        with place.open(encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST)
    except (OSError, ValueError, RuntimeError):
        return missing
    found = _of_lines(text.splitlines(), 1, lists, str(place))
    shown = os.path.relpath(place, begin.parent)
    return missing if found is None else [replace(one, file=one.file or shown) for one in found]


def _of_other_indexes(releases: Sequence[Release], indexes: Sequence[str]) -> list[Release]:
    """Return releases of a list that names indexes: which wheel is meant is not known."""
    if all(_OF_FLASHINFER.fullmatch(line) for line in indexes):
        return list(releases)
    return [replace(one, version="", why=one.why or INDEX) for one in releases]


def _logical(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, without comments: one that ends in a backslash goes on in the next."""
    begun, begin = "", 0
    for number, line in enumerate(lines, first):
        begin = begin if begun else number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            begun += line[:-1] + " "
            continue
        whole, begun = _COMMENT.sub("", begun + line).strip(), ""
        if whole:
            yield begin, whole
    if rest := _COMMENT.sub("", begun).strip():
        yield begin, rest


def requirement(text: str, line: int) -> Release | None:
    """Return the package of a requirement or of an address; None: it is neither."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return _addressed(text, line) if _ADDRESS.fullmatch(text) else None
    exact = [one.version for one in wanted.specifier if one.operator in ("==", "===") and not one.version.endswith("*")]
    version = exact[0] if len(exact) == len(wanted.specifier) == 1 else ""
    why = ELSEWHERE if wanted.url else "" if version else UNPINNED
    version = _addressed(wanted.url, line).written if wanted.url else version
    release = release_of(wanted.name, version, line, why)
    if wanted.marker is None:
        return release
    on = {machine: _installed_on(wanted.marker, machine) for machine in MACHINES}
    if None in on.values():
        return replace(release, version="", why=release.why or CONDITION)
    return replace(release, machines=tuple(machine for machine, is_there in on.items() if is_there))


def _installed_on(marker: Marker, machine: str) -> bool | None:
    """Return whether a marker holds on Linux for a processor; None if the version of Python or an extra decides."""
    found = set()
    for minor in _PYTHONS:
        python = {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0", "implementation_version": ""}
        system = {"platform_machine": machine, "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
        unknown = {"platform_release": "", "platform_version": "", "extra": ""}
        try:
            found.add(marker.evaluate({**python, **system, **unknown}))
        except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
            return None
    is_asked = re.search(r"\b(?:extra|platform_release|platform_version|implementation_version)\b", str(marker))
    return None if is_asked or len(found) > 1 else found.pop()


def _addressed(text: str, line: int) -> Release:
    """Return the package at an address: what ``#egg=`` says, a wheel's project, or the last part of the path."""
    address, _, fragment = text.partition("#")
    egg = re.search(r"(?:^|&)egg=([\w.-]+)", fragment)
    last = address.rstrip("/").rpartition("/")[2]
    version = ""
    try:
        name, parsed, *_ = parse_wheel_filename(unquote(last))
        version = str(parsed)
    except InvalidWheelFilename:
        name = canonicalize_name(re.sub(r"@.*|\.git\b.*", "", last))
    return release_of(egg[1] if egg else name, version, line, ELSEWHERE)


def release_of(name: str, version: str, line: int, why: str = "") -> Release:
    """Return a release of a package under its normalized name; ``why``: why its wheel cannot be known, if it cannot."""
    why = why or (LOCAL if "+" in version else "")
    return Release(canonicalize_name(name), "" if why else version, line, why, written=version)


def _environment(text: str) -> tuple[Release, ...] | None:
    """Return the packages of conda's environment.yml: its own, and those that pip installs."""
    if not re.search(r"^dependencies:", text, re.MULTILINE):
        return None
    try:
        from ruamel.yaml import YAML  # noqa: PLC0415 - the extra brings it
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    except ImportError:
        return None
    try:
        root = YAML(typ="rt").compose(text)
    except (YAMLError, AttributeError, RecursionError):
        return None
    keys = _entries(root)
    listed = keys.get("dependencies")
    if listed is None or listed.id != "sequence":
        return None
    found: list[Release] = []
    for item in listed.value:
        if item.id == "scalar" and (spec := _CONDA_SPEC.fullmatch(item.value.strip())):
            found.append(release_of(spec[1], "", item.start_mark.line + 1, CONDA))
            continue
        of_pip = _entries(item).get("pip")
        if of_pip is None or of_pip.id != "sequence":
            return None
        lines = {one.start_mark.line + 1: str(one.value) for one in of_pip.value}
        own = [
            release
            for number, line in lines.items()
            for release in _requirements([line], named=True, first=number) or ()
        ]
        found += _of_other_indexes(own, [line for line in lines.values() if _INDEX.match(line)])
    return tuple(found) or None


def read_project(text: str) -> tuple[Release, ...]:
    """Return the packages that a pyproject.toml wants; those of an extra or a group depend on it."""
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ()
    lines = text.splitlines()
    project, uv = _table_of(root, "project"), _table_of(_table_of(root, "tool"), "uv")
    groups = {**_table_of(project, "optional-dependencies"), **_table_of(root, "dependency-groups")}
    sources = set(map(canonicalize_name, _table_of(uv, "sources")))
    wanted = [(one, "") for one in _list_of(project.get("dependencies"))]
    wanted += [(one, f"installed with {name} only") for name, every in groups.items() for one in _list_of(every)]
    found = []
    for one, only in wanted:
        at = next((number for number, line in enumerate(lines, 1) if one in line), 1)
        release = requirement(one, at)
        if release is not None:
            elsewhere = ELSEWHERE if release.project in sources else ""
            why = release.why or elsewhere or only or (INDEX if uv.get("index") else "")
            found.append(replace(release, version="" if why else release.version, why=why, is_wanted=True))
    return tuple(found)


def _table_of(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _list_of(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _entries(node: Any) -> dict[str, Any]:
    if node is None or node.id != "mapping":
        return {}
    return {key.value: value for key, value in node.value if key.id == "scalar"}
