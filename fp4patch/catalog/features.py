"""Reads ``patches/features/*.toml`` and ``patches/toolkits.toml``: what ``fp4patch probe`` tries, and with what.

Every mistake in them is reported at once, by file and key.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from fp4patch.errors import ManifestError
from fp4patch.model import Problem
from fp4patch.model.features import FeatureGroup, ToolkitWheels

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T", FeatureGroup, ToolkitWheels)

FOLDER, WHEELS = "patches/features", "patches/toolkits.toml"


def load_features(root: Path) -> tuple[FeatureGroup, ...]:
    """Every file's features, in the order of the files' names. ManifestError carries every problem found."""
    problems: list[Problem] = []
    paths = sorted((root / FOLDER).glob("*.toml"))
    groups = [group for path in paths if (group := _read(FeatureGroup, path, root, problems))]
    features = [feature for group in groups for feature in group.features]
    for key in ("instruction", "title"):
        for name, count in Counter(getattr(feature, key) for feature in features).items():
            if count > 1:
                problems.append(Problem("a name of its own", repr(name), file=FOLDER, nearest=key))
    for feature in features:
        try:
            re.compile(feature.sass)
        except re.error as error:
            problems.append(
                Problem("a regular expression", f"{feature.sass!r}: {error}", file=FOLDER, nearest=feature.instruction)
            )
    if not groups and not problems:
        problems.append(Problem("features", "none", file=FOLDER))
    if problems:
        raise ManifestError(
            "the features are not valid", problems=problems, help="the keys are those of fp4patch/model/features.py"
        )
    return tuple(groups)


def load_toolkits(root: Path) -> ToolkitWheels:
    """The pinned wheels. ManifestError carries every problem found."""
    problems: list[Problem] = []
    found = _read(ToolkitWheels, root / WHEELS, root, problems)
    pinned = Counter((wheel.release, wheel.machine) for wheel in found.wheels) if found else Counter[tuple[str, str]]()
    problems += [
        Problem("one wheel for each", f"{count} of {release} for {machine}", file=WHEELS)
        for (release, machine), count in pinned.items()
        if count > 1
    ]
    if problems or found is None:
        raise ManifestError(
            "the toolkits are not valid", problems=problems, help="the keys are those of fp4patch/model/features.py"
        )
    return found


def _read(kind: type[T], path: Path, root: Path, problems: list[Problem]) -> T | None:
    where = str(path.relative_to(root))
    try:
        return TypeAdapter(kind).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(Problem("TOML", str(error), file=where))
    except ValidationError as error:
        problems += [
            Problem(found["msg"], repr(found["input"])[:80], file=where, nearest=".".join(map(str, found["loc"])))
            for found in error.errors(include_url=False)
        ]
    return None
