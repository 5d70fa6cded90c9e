"""Tables of the project's TOML files: their base class, and the types of their values, each with its own check."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from packaging.specifiers import SpecifierSet
from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from fp4patch.core.arch import Arch
from fp4patch.core.release import is_version
from fp4patch.core.tree_path import is_inside


class Manifest:
    """A table of a TOML file. Its keys are the fields of the dataclass, and unknown keys are rejected."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


def must(holds: Callable[[Any], object], expected: str) -> AfterValidator:
    """Return the check of a value: its description is the problem's text where it does not hold, or raises an error."""

    def check(value: Any) -> Any:
        try:
            sound = holds(value)
        except (ValueError, LookupError, re.error):
            sound = False
        if not sound:
            raise PydanticCustomError("expected", expected)
        return value

    return AfterValidator(check)


def beside(holds: Callable[[Path], bool], expected: str) -> AfterValidator:
    """Return the check of a path beside the file that is read, whose directory is the context."""

    def check(name: str, info: ValidationInfo) -> str:
        if not holds(Path(info.context or "") / name):
            raise PydanticCustomError("expected", "{expected} beside patch.toml", {"expected": expected})
        return name

    return AfterValidator(check)


def _names_version(text: str) -> bool:
    return not text or text.format(version="1", release="1") != text.format(version="2", release="2")


def _has_whole_stars(glob: str) -> bool:
    return all("**" not in part or part == "**" for part in PurePosixPath(glob).parts)


SOME = Field(min_length=1)
"""Check that a list has an item, or a table a key."""
SomeText = Annotated[str, must(str.strip, "some text")]
VersionText = Annotated[str, must(is_version, "a version such as '4.2.1'")]
Specifier = Annotated[str, must(lambda text: str(SpecifierSet(text)) or not text, "a specifier such as '>=4.2,<4.8'")]
"""Specifier of releases (PEP 440); empty for all."""
VersionPlace = must(_names_version, "a name with {version} or {release} in it")
"""Check of patterns of names that differ in the release."""
Identifier = Annotated[str, must(str.isidentifier, "the name of a macro")]
FileName = Annotated[str, must(lambda name: "/" not in name, "the name of a file")]
ArchName = Annotated[str, must(Arch.parse, "an architecture such as sm_121a")]
Regex = Annotated[str, must(re.compile, "a regular expression")]
has_group = must(lambda text: re.compile(text).groups, "a regular expression with a group")
TreePath = Annotated[
    str, must(lambda path: is_inside(path) and "\\" not in path, "a path inside the tree, with slashes")
]
Glob = Annotated[TreePath, must(_has_whole_stars, "`**` as the whole name of a directory")]
Globs = Annotated[tuple[Glob, ...], SOME]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
FileBeside = Annotated[str, beside(Path.is_file, "a file")]
FolderBeside = Annotated[str, beside(Path.is_dir, "a directory")]
