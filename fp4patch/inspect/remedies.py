"""Recommended actions for a verdict: remedies.toml has a text per cause, and the published releases that need none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from fp4patch.inspect.known import read

if TYPE_CHECKING:
    from fp4patch.core.arch import Arch


@dataclass(frozen=True)
class Release:
    """A published release that is green on both GPUs."""

    distribution: str
    package: str
    """The directory that it installs."""
    good: str


@dataclass(frozen=True)
class Remedies:
    """The contents of remedies.toml."""

    cause: Mapping[str, str]
    release: tuple[Release, ...]


def load() -> Remedies:
    """Return remedies.toml."""
    return read("remedies.toml", Remedies)


def of(cause: str, gpu: Arch) -> str:
    """Return what to do about a cause, for a GPU."""
    return load().cause[cause].format(own=gpu)


def newer(source: str) -> str:
    """Return which published release to take instead of a wheel or an installed package; empty if none is known."""
    name = PurePath(source).name
    try:
        distribution, version, *_ = parse_wheel_filename(name)
        known = next((one for one in load().release if canonicalize_name(one.distribution) == distribution), None)
        if known and str(version) == known.good:
            return ""
    except InvalidWheelFilename:
        known = next((one for one in load().release if one.package == name), None)
    return f"take {known.distribution} {known.good}, which has the FP4 code for both GPUs" if known else ""
