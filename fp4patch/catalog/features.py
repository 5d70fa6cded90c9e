"""Reads ``records/features/*.toml`` and ``records/toolkits.toml``: what ``fp4patch features`` tries, and with what.

Every mistake in them is reported at once, by file and key.
"""

import re
from collections import Counter
from pathlib import Path

from fp4patch.catalog.feature import FeatureGroup, ToolkitWheels
from fp4patch.catalog.reading import Reader
from fp4patch.core.errors import ManifestError
from fp4patch.core.problem import Problem

FOLDER, WHEELS = "records/features", "records/toolkits.toml"
_HELP = "the keys are those of fp4patch/catalog/feature.py"


def load_features(root: Path) -> tuple[FeatureGroup, ...]:
    """Return every file's features, in the order of the files' names. ManifestError carries every problem found."""
    reader = Reader(root)
    paths = sorted((root / FOLDER).glob("*.toml"))
    groups = [group for path in paths if (group := reader.read(FeatureGroup, path, reader.table(path), {}))]
    problems = reader.problems
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
        raise ManifestError("the features are not valid", problems=problems, help=_HELP)
    return tuple(groups)


def load_toolkits(root: Path) -> ToolkitWheels:
    """Return the pinned wheels. ManifestError carries every problem found."""
    reader = Reader(root)
    found = reader.read(ToolkitWheels, root / WHEELS, reader.table(root / WHEELS), {})
    problems = reader.problems
    pinned = Counter((wheel.release, wheel.machine) for wheel in found.wheels) if found else Counter[tuple[str, str]]()
    problems += [
        Problem("one wheel for each", f"{count} of {release} for {machine}", file=WHEELS)
        for (release, machine), count in pinned.items()
        if count > 1
    ]
    if problems or found is None:
        raise ManifestError("the toolkits are not valid", problems=problems, help=_HELP)
    return found
