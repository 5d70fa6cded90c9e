"""``fp4patch features``: what each compiler makes of the instructions that FP4 needs, target by target."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.feature import FeatureGroup, FeatureReport
from fp4patch.catalog.features import load_features, load_toolkits
from fp4patch.catalog.manifest import data_root
from fp4patch.commands.features import measure as doctor
from fp4patch.core.arch import requested
from fp4patch.core.cache import cache_dir
from fp4patch.core.errors import UsageError
from fp4patch.core.progress import OnProgress, silent
from fp4patch.proof import toolkits
from fp4patch.proof.ptxas import Assembler


def assemblers(
    releases: Sequence[str], cuda_roots: Sequence[Path], *, on_download: OnProgress
) -> tuple[Assembler, ...]:
    """Those installed at ``cuda_roots``, then those of ``releases``, which are fetched if they are not there.

    Without either, that of the toolkit that ``verify`` would take.
    """
    wheels = toolkits.chosen(load_toolkits(data_root()), releases) if releases else []
    found = [toolkits.installed(root) for root in cuda_roots]
    found += [toolkits.fetched(wheel, on_download) for wheel in wheels]
    return tuple(found) or (toolkits.installed(),)


def probe(
    tools: Sequence[Assembler],
    *,
    targets: str | None = None,
    patterns: Sequence[str] = (),
    isa: str | None = None,
    jobs: int | None = None,
    on_progress: OnProgress = silent,
) -> FeatureReport:
    """Return one matrix for each assembler.

    ``targets`` are by default all that each knows; ``patterns`` choose features by instruction or title; ``isa`` is by
    default the newest PTX that each takes.
    """
    groups = _chosen(load_features(data_root()), patterns)
    archs = requested(targets, "for example --target 120a,121a") if targets else None
    if isa is not None and not re.fullmatch(r"\d+\.\d+", isa):
        raise UsageError(f"{isa!r} is not a PTX version", help="for example 8.6")
    wanted = [feature for group in groups for feature in group.features]
    found = tuple(
        doctor.probe(
            wanted,
            archs or assembler.targets,
            assembler,
            isa=isa or assembler.newest_isa,
            store=cache_dir() / "probes",
            jobs=jobs or os.cpu_count() or 1,
            on_progress=on_progress,
        )
        for assembler in tools
    )
    return FeatureReport(groups, found, __version__)


def _chosen(groups: Sequence[FeatureGroup], patterns: Sequence[str]) -> tuple[FeatureGroup, ...]:
    def matches(text: str, pattern: str) -> bool:
        return fnmatchcase(text.lower(), f"*{pattern.lower()}*")

    for pattern in patterns:
        if not any(matches(f.instruction, pattern) or matches(f.title, pattern) for g in groups for f in g.features):
            raise UsageError(
                f"no feature is called {pattern!r}", help="`fp4patch features` without --feature shows all"
            )
    if not patterns:
        return tuple(groups)
    chosen = [
        FeatureGroup(
            title=group.title,
            features=tuple(
                f for f in group.features if any(matches(f.instruction, p) or matches(f.title, p) for p in patterns)
            ),
        )
        for group in groups
    ]
    return tuple(group for group in chosen if group.features)
