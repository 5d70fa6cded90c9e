"""``fp4patch explore``: the page, from the records of doctor, of the matrix and of the compilers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from packaging.version import Version

from fp4patch import __version__
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.target import Target
from fp4patch.commands.explore import answers
from fp4patch.commands.templates import own_script, render
from fp4patch.core.arch import GPUS as JUDGED
from fp4patch.core.arch import Arch, reach
from fp4patch.doctor.outlook import kernels_of
from fp4patch.doctor.recorded import record_of

MATRIX = "records/matrix.json"
"""Path below the catalog's root of the results of each patch on each release, as ``tools.watch`` recorded them."""
INSTRUCTIONS = "records/instructions.json"
"""Path below the catalog's root of the outcome of each instruction, target and toolkit."""
REPOSITORY = "https://github.com/fp4patch/fp4patch/blob/main/"
GPUS = {
    "sm_121": "GB10 (DGX Spark)",
    "sm_120": "RTX PRO 6000, RTX 50",
    "sm_120,sm_121": "both, with one build",
    "sm_90": "H200, for comparison",
    "sm_100": "B200, for comparison",
}
"""Names of the GPUs by the value of doctor's --for."""


def page() -> str:
    """Return the page as a complete string. It loads nothing, and runs its own script alone."""
    catalog = load()
    here = Path(__file__).parent
    record = answers.read(catalog.root)
    nodes = answers.packed(record)
    data = {
        "answers": nodes,
        "instructions": record_of(catalog.root, INSTRUCTIONS)["nodes"],
        "catalog": answers.packed(_catalog(catalog, record, nodes)),
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return render(
        "page.html.j2",
        here,
        data=Markup(text),  # noqa: S704 - no < is left in it
        code=own_script(here / "page.js"),
        version=__version__,
        repository=REPOSITORY,
    )


def _catalog(catalog: Catalog, record: Any, nodes: Sequence[Any]) -> dict[str, Any]:
    """Return what the page shows of targets, patches, variants and the matrix."""
    answered = {(row["target"], row["version"]) for row in record["releases"]}
    matrix = json.loads((catalog.root / MATRIX).read_text(encoding="utf-8"))
    return {
        "version": __version__,
        "repository": REPOSITORY,
        "gpus": GPUS,
        "judged": [str(gpu) for gpu in JUDGED],
        "reaches": _reaches(nodes),
        "matrix": matrix["rows"],
        "targets": {
            target.name: {
                "title": target.title,
                "unanswered": [v for v in _known(target) if (target.name, v) not in answered],
                "setting": target.build.setting if target.build else "",
                "separator": target.build.separator if target.build else "",
                "kernels": kernels_of(target.build) if target.build else "",
                "later": bool(target.build and target.build.kind == "jit"),
            }
            for target in catalog.targets.values()
        },
        "patches": {
            patch.id: {
                "title": patch.title,
                "reason": patch.reason.strip(),
                "link": patch.link,
                "retire": patch.retire,
                "variants": [v.name for v in catalog.variants.values() if patch.id in v.patch_ids],
            }
            for patch in catalog.patches.values()
        },
        "variants": {
            variant.name: {"title": variant.title, "summary": variant.summary.strip(), "cost": variant.cost}
            for variant in catalog.variants.values()
        },
    }


def _known(target: Target) -> list[str]:
    """Return the releases that the catalog can fetch by a hash or a commit."""
    versions = {*target.commits, *(archive.version for archive in target.pinned)}
    return sorted(versions, key=Version, reverse=True)


def _reaches(nodes: Sequence[Any]) -> dict[str, dict[str, str]]:
    """Return the support that each GPU gets from each set of architectures in the record: ``12.0f,12.1a``."""
    tables = [value for value in answers.parts(nodes) if isinstance(value, dict)]
    made = {tuple(row["kernels"]) for row in tables if "kernels" in row}
    made |= {tuple(archs) for there in tables for archs in there.get("modules", {}).values()}
    gpus = {gpu for group in GPUS for gpu in group.split(",")}
    return {
        ",".join(archs): {gpu: reach(map(Arch.parse, archs), Arch.parse(gpu)).value for gpu in sorted(gpus)}
        for archs in sorted(made)
    }
