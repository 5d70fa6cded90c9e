"""Names of settings that hold targets, from ``names.toml``: how each list is written, and who reads it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Notation = Literal["cmake", "torch", "code", "xla", "xmake", "own"]


@dataclass(frozen=True)
class ListName:
    """Names of one kind of list."""

    names: str
    """A regular expression for the whole name."""
    notation: Notation
    read_by: str
    plain: str = ""
    """What an element without a suffix comes to."""


@cache
def _lists() -> tuple[tuple[re.Pattern[str], ListName], ...]:
    text = files(__package__).joinpath("names.toml").read_text(encoding="utf-8")
    found = (ListName(**entry) for entry in tomllib.loads(text)["list"])
    return tuple((re.compile(one.names), one) for one in found)


@cache
def list_name(name: str) -> ListName | None:
    """Return what is known of a setting that holds targets; None if it is none."""
    return next((one for pattern, one in _lists() if pattern.fullmatch(name)), None)
