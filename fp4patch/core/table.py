"""Tables of the project's TOML files: their base class, and the types of their values, each with its own check."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from fp4patch.core.arch import Arch
from fp4patch.core.release import is_version
from fp4patch.core.tree_path import is_inside


class Manifest:
    """A table of a TOML file. Its keys are the fields of the dataclass, and unknown keys are rejected."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


def must(holds: Callable[[Any], object], expected: str) -> AfterValidator:
    """Return the check of a value: its description is the problem's text where it does not hold."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError("expected", expected)
        return value

    return AfterValidator(check)


def some(what: str) -> AfterValidator:
    """Return the check that a list has an item, or a table a key."""
    return must(bool, f"{what} at least")


def parses(parse: Callable[[str], object], error: type[Exception]) -> Callable[[str], bool]:
    """Return the condition that a parser takes a text."""

    def holds(text: str) -> bool:
        try:
            parse(text)
        except error:
            return False
        return True

    return holds


def beside(holds: Callable[[Path], bool], expected: str) -> AfterValidator:
    """Return the check of a path beside the file that is read, whose directory is the context."""

    def check(name: str, info: ValidationInfo) -> str:
        if not holds(Path(info.context or "") / name):
            raise PydanticCustomError("expected", "{expected} beside patch.toml", {"expected": expected})
        return name

    return AfterValidator(check)


def _has_text(path: Path) -> bool:
    try:
        return bool(path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return False


def _names_version(text: str) -> bool:
    try:
        return not text or text.format(version="1", release="1") != text.format(version="2", release="2")
    except (ValueError, LookupError):
        return False


def _is_in_tree(path: str) -> bool:
    return is_inside(path) and "\\" not in path


def _has_whole_stars(glob: str) -> bool:
    return all("**" not in part or part == "**" for part in PurePosixPath(glob).parts)


SomeText = Annotated[str, must(str.strip, "some text")]
Positive = Annotated[int, must(lambda number: number > 0, "a number from 1 on")]
VersionText = Annotated[str, must(is_version, "a version such as '4.2.1'")]
Specifier = Annotated[str, must(parses(SpecifierSet, InvalidSpecifier), "a version specifier such as '>=4.2,<4.8'")]
"""Specifier of releases (PEP 440); empty for all."""
VersionPlace = must(_names_version, "a name with {version} or {release} in it")
"""Check of patterns of names that differ in the release."""
Identifier = Annotated[str, must(str.isidentifier, "the name of a macro")]
FileName = Annotated[str, must(lambda name: "/" not in name, "the name of a file")]
ArchName = Annotated[str, must(parses(Arch.parse, ValueError), "an architecture such as sm_121a")]
Regex = Annotated[str, must(parses(re.compile, re.error), "a regular expression")]
has_group = must(lambda text: re.compile(text).groups, "a regular expression with a group")
TreePath = Annotated[str, must(_is_in_tree, "a path inside the tree, with slashes")]
OneFile = Annotated[TreePath, must(lambda path: not set(path) & set("*?["), "one path (`search` takes globs)")]
Glob = Annotated[TreePath, must(_has_whole_stars, "`**` as the whole name of a directory")]
Globs = Annotated[tuple[Glob, ...], some("a glob")]
Sha256 = Annotated[str, must(re.compile("[0-9a-f]{64}").fullmatch, "a SHA-256, 64 hex digits in lower case")]
Commit = Annotated[str, must(re.compile("[0-9a-f]{40}").fullmatch, "40 hex digits")]
FileBeside = Annotated[str, beside(Path.is_file, "a file")]
FolderBeside = Annotated[str, beside(Path.is_dir, "a directory")]
TemplateBeside = Annotated[FileBeside, beside(_has_text, "a file of UTF-8 text, not empty,")]
