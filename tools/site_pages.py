"""Pages of the site that a program makes: patches and doctor on each release, instructions, the keys of edits."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from fp4patch.catalog.manifest import load
from fp4patch.catalog.surveyed import RECORD
from fp4patch.commands.explore_page import INSTRUCTIONS, MATRIX
from fp4patch.core.arch import Arch
from tools import keys_of_edits

Row = Mapping[str, Any]


def matrix(root: Path) -> str:
    """Return the state of each patch on each release, from ``records/matrix.json``."""
    document = json.loads((root / MATRIX).read_text(encoding="utf-8"))
    text = """# Each patch on each release

`python -m tools.watch` tries every patch on the source of every release. *applied*: it applies;
*upstreamed*: the release has the change; *not-needed*: it never had what the patch changes; *drifted*: refused.
*verified*: variants whose machine code was compiled, judged and executed on that release.
"""
    for target in dict.fromkeys(row["target"] for row in document["rows"]):
        own = [row for row in document["rows"] if row["target"] == target]
        patches = list(dict.fromkeys(patch for row in own for patch in row["states"]))
        inside = sorted({part for row in own for part in row.get("inside", {})})
        rows = [
            [
                row["version"],
                *(row.get("inside", {}).get(part, "") for part in inside),
                *(row["states"].get(patch, "-") for patch in patches),
                _verified(row),
            ]
            for row in own
        ]
        text += _table(target, ["version", *(f"{part} inside" for part in inside), *patches, "verified"], rows)
    taken = [[row["patch"], row["since"], row["newest"]] for row in document["upstreamed"]]
    text += _table("Taken by upstream", ["patch", "since", "newest release that was tried"], taken)
    lacking = [[row["target"], row["version"], row["lacks"]] for row in document["without"]]
    return text + _table("Not tried", ["target", "version", "the package index has no"], lacking)


def _verified(row: Row) -> str:
    verdicts = row.get("verified", {}).items()
    return ", ".join(name if verdict == "pass" else f"**{name}: {verdict}**" for name, verdict in verdicts)


def doctor(root: Path) -> str:
    """Return what doctor finds in each release's source tree, from ``records/releases.json``."""
    rows = json.loads((root / RECORD).read_text(encoding="utf-8"))["releases"]
    text = """# Doctor on each release

`python -m tools.regenerate releases` runs `fp4patch doctor` on the pristine source of every release. For vLLM, a cell
has the architectures of the FP4 kernels that the tree's own CMake functions make of the arch list at the head of the
column. For FlashInfer, which compiles on the GPU's own machine, a cell has those of its Python on sm_120, then on
sm_121. The columns of the GPUs have doctor's verdict, and the last one the variant that it recommends.
"""
    for target in load().targets.values():
        own = [row for row in rows if row["target"] == target.name]
        for cuda in dict.fromkeys(cuda for row in own for cuda in row["verdicts"]):
            lists = target.build.lists if target.build else ()
            gpus = sorted(own[0]["verdicts"][cuda]["gpus"])
            body = []
            for cells, same in groupby(own, key=lambda row: _cells(row, cuda, lists, gpus)):
                versions = [row["version"] for row in same]
                body.append([" to ".join(dict.fromkeys([versions[0], versions[-1]])), *cells])
            heads = ["version", *(f"`{asked}`" if asked else "unset" for asked in lists), *gpus, "take"]
            text += _table(f"{target.title}{f', CUDA {cuda}' if cuda else ''}", heads, body)
    return text


def _cells(row: Row, cuda: str, lists: Sequence[str], gpus: Sequence[str]) -> list[str]:
    made, verdict = row["builds"].get(cuda, {}), row["verdicts"][cuda]
    archs = [(" / " if ":" in "".join(made[asked]) else ", ").join(made[asked]) or "none" for asked in lists]
    judged = [": ".join(verdict["gpus"].get(gpu, ["not asked"])) for gpu in gpus]
    return [*archs, *judged, verdict["recommended"] or "nothing"]


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] * len(heads), *rows]
    return f"\n## {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def instructions(root: Path) -> str:
    """Return the machine code of each FP4 instruction on each target, from ``records/instructions.json``."""
    record = json.loads((root / INSTRUCTIONS).read_text(encoding="utf-8"))
    text = """# FP4 instructions of each target

[What the outcomes mean](features.md). Targets with equal results share a column. "from 13.0" means from that CUDA
release on; *refused*, by the newest ptxas; ≈ is emulated by other instructions.
"""
    for group in record["groups"]:
        columns: dict[tuple[str, ...], list[str]] = {}
        for target in sorted(group["features"][0]["cells"], key=Arch.parse):
            results = tuple(_code(feature["cells"][target]) for feature in group["features"])
            columns.setdefault(results, []).append(target.removeprefix("sm_"))
        rows = [
            [f"`{feature['instruction']}`", *(results[at] for results in columns)]
            for at, feature in enumerate(group["features"])
        ]
        text += _table(group["title"], ["PTX", *(" ".join(targets) for targets in columns.values())], rows)
    return text


def _code(by_release: Mapping[str, Sequence[str]]) -> str:
    """Return the machine code by the newest compiler, and the release from which on it is that."""
    oldest = next(iter(by_release))
    outcome, code = list(by_release.values())[-1]
    if outcome == "rejected":
        return "refused"
    first = oldest
    for release, result in reversed([*by_release.items()]):
        if result != [outcome, code]:
            break
        first = release
    shown = f"`{code}`" if outcome == "hardware" else f"≈ {code or 'nothing'}"
    return shown if first == oldest else f"{shown} from {first}"


PAGES: Mapping[str, Callable[[Path], str]] = {
    "matrix.md": matrix,
    "doctor-trees.md": doctor,
    "instructions.md": instructions,
    "keys.md": lambda _: keys_of_edits.page(),
}
"""Name of the page below docs/, and the function that makes it of the catalog's directory."""
