"""Tables of doctor beside this module: known.toml, by_design.toml, remedies.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TypeVar

from pydantic import TypeAdapter

_Table = TypeVar("_Table")


@dataclass(frozen=True)
class CompilerProgram:
    """A compiler that runs when a program does. known.toml explains the fields of this and the next classes."""

    file: str
    role: str
    used_by: str
    alone: bool = False
    remedy: str = "use the one of CUDA {cuda} or later"
    installed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Package:
    """A Python package with kernels."""

    name: str
    distributions: tuple[str, ...]
    code: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A condition of a header that build recipes take a GPU out of."""

    macro: str
    about: str
    subject: str
    remedy: str
    link: str


@dataclass(frozen=True)
class KnownPrograms:
    """The contents of known.toml."""

    compiler: tuple[CompilerProgram, ...]
    package: tuple[Package, ...]
    recipe: Recipe
    gpu: Mapping[str, str]


def read_table(file: Traversable, kind: type[_Table]) -> _Table:
    """Return the content of a TOML file, checked against its type."""
    return TypeAdapter(kind).validate_python(tomllib.loads(file.read_text(encoding="utf-8")))


@cache
def known() -> KnownPrograms:
    """Return known.toml."""
    return read_table(resources.files(__package__).joinpath("known.toml"), KnownPrograms)
