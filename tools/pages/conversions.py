"""Count the instructions of CUTLASS's conversions under each variant, for docs/variants.md and docs/evidence.md.

    python -m tools.regenerate conversions TREE...     # pristine CUTLASS trees: 4.2.1, 4.7.0
    python -m tools.regenerate conversions             # the pages alone, from the record

``records/conversions.json`` has what the compiler made of each probe, of the pristine tree and of that of each variant,
compiled and counted as ``fp4patch verify`` does it: the instructions of a whole probe, loads and store included, and
its branches. Every number of both pages is from there.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.probe import Probe
from fp4patch.core.arch import requested
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof.compile import compile_probes
from fp4patch.proof.subject import Folded, Means, Probes, Subject
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.proof.view import SourceView
from tools.pages import _made_part as made_part

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS.parent / "records" / "conversions.json"
PRISTINE = "pristine"

ARCHS = ("sm_120a", "sm_121a", "sm_121")
"""The columns of docs/variants.md."""
OF_VARIANTS = {
    "float-to-e2m1-x8": "8 × float → E2M1",
    "float-to-e2m1": "float → E2M1, one value",
    "e2m1-to-float-x8": "8 × E2M1 → float",
    "e2m1-to-half-x8": "8 × E2M1 → half",
    "float-to-e2m3-x4": "4 × float → E2M3 (FP6)",
}
"""The rows of docs/variants.md: probes that are compiled from the tree of every variant."""

KINDS = {"suffixed": "sm_120a", "bare": "sm_121", "sm_90": "sm_90", "sm_80": "sm_80"}
"""The columns of docs/evidence.md, each before and after."""
OF_EVIDENCE = {
    "construct-float-x8": "8 × `float_e2m1_t(float)`",
    "construct-half-x8": "8 × `float_e2m1_t(half_t)`",
    "decode-value-x8": "8 × `float(float_e2m1_t)`",
    "decode-float-x8": "8 × E2M1 → float (array)",
    "decode-half-x8": "8 × E2M1 → half (array)",
    "decode-bfloat16-x8": "8 × E2M1 → bfloat16 (array)",
    "construct-e2m3-x4": "4 × float → E2M3",
    "construct-e3m2-x4": "4 × float → E3M2",
    "construct-e2m3-double-x4": "4 × double → E2M3",
    "construct-e3m2-double-x4": "4 × double → E3M2",
    "decode-e2m3-x4": "4 × E2M3 → float",
    "decode-e3m2-x4": "4 × E3M2 → float",
}
"""The rows of docs/evidence.md: probes of next3."""

Count = tuple[int, int]
"""Instructions and branches."""
Counts = dict[str, dict[str, dict[str, Count]]]
"""By probe, target, and variant or PRISTINE."""


def probes_of(catalog: Catalog, names: Iterable[str]) -> list[tuple[Probe, Path]]:
    """Return the probes of CUTLASS with these names, each with its source."""
    every = (found for variant in catalog.variants.values() for found in catalog.probes_of(variant, "cutlass"))
    named = {probe.name: (probe, source) for probe, source in every}
    return [named[name] for name in names]


def counted(tree: Path, toolchain: Toolchain) -> tuple[str, Counts]:
    """Return the release of a pristine tree, and the counts of its probes, before and after each variant."""
    catalog = load()
    counts: Counts = {}
    (identified,) = identify_all([tree], catalog)
    for variant in catalog.variants:
        groups: list[tuple[Iterable[str], Iterable[str]]] = [(OF_VARIANTS, ARCHS)]
        if variant == "next3":
            groups.append((OF_EVIDENCE, KINDS.values()))
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "cutlass"
            shutil.copytree(tree, copy)
            apply = [sys.executable, "-m", "fp4patch", "apply", "--variant", variant, str(copy)]
            subprocess.run(apply, check=True, capture_output=True)
            (patched,) = identify_all([copy], catalog)
            for names, archs in groups:
                subject = Subject(
                    tree=patched,
                    folded=Folded(pristine=SourceView(tree), written={}),
                    variant=catalog.variant(variant),
                    probes=Probes(ran=probes_of(catalog, names), archs=requested(",".join(archs), "")),
                    toolchain=toolchain,
                )
                compiled = compile_probes(subject, Means(store=Store(cache_dir() / "compilations")))
                for pair in compiled.pairs:
                    row = counts.setdefault(pair.probe.name, {}).setdefault(str(pair.arch), {})
                    for built, column in ((pair.before, PRISTINE), (pair.after, variant)):
                        assert built.listing, f"{pair.probe.id} for {pair.arch}: {built.error}"
                        row[column] = built.listing.size, built.listing.branches
    return str(identified.version), counts


def text(nvcc: str, releases: Mapping[str, Counts]) -> str:
    """Return the record: a line for each probe and target."""
    lines = [f'{{\n"nvcc": "{nvcc}",\n"releases": {{']
    for release, counts in releases.items():
        rows = [f"{json.dumps(probe)}: {{\n" + ",\n".join(_rows(of)) + "\n}" for probe, of in counts.items()]
        lines += [f'"{release}": {{', ",\n".join(rows), "},"]
    lines[-1] = "}"
    return "\n".join([*lines, "}", "}", ""])


def _rows(targets: Mapping[str, Mapping[str, Count]]) -> list[str]:
    return [f"{json.dumps(arch)}: {json.dumps(of)}" for arch, of in targets.items()]


def recorded() -> tuple[str, dict[str, Counts]]:
    """Return the release of the compiler, and the counts by release of CUTLASS."""
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    return data["nvcc"], data["releases"]


def cell(count: Sequence[int], branches: str = " ({} branches)") -> str:
    """Return the instructions, and the branches where there are some."""
    return f"{count[0]:,}{branches.format(count[1]) if count[1] else ''}"


def variants_table(release: str, counts: Counts) -> str:
    """Return one release as Markdown: a block of rows for each conversion; variants with the same code in one row."""
    lines = [f"### CUTLASS {release}", "", f"| conversion | variant | {' | '.join(ARCHS)} |", "|---|---|---|---|---|"]
    for probe, title in OF_VARIANTS.items():
        names: dict[str, list[str]] = {}
        for variant in counts[probe][ARCHS[0]]:
            names.setdefault(" | ".join(cell(counts[probe][arch][variant]) for arch in ARCHS), []).append(variant)
        titles = (title, *[""] * len(names))
        lines += [
            f"| {first} | {', '.join(variants)} | {row} |"
            for first, (row, variants) in zip(titles, names.items(), strict=False)
        ]
    return "\n".join(lines) + "\n"


def evidence_table(releases: Mapping[str, Counts]) -> str:
    """Return the conversions of next3 as Markdown; where the releases differ, the counts follow one another."""
    heads = [f"{kind} {side}" for kind in KINDS for side in ("before", "after")]
    lines = [f"| kernel | {' | '.join(heads)} |", f"|{'---|' * (1 + len(heads))}"]
    for probe, title in OF_EVIDENCE.items():
        cells = []
        for arch in KINDS.values():
            for column in (PRISTINE, "next3"):
                each = [cell(counts[probe][arch][column], " ({})") for counts in releases.values()]
                cells.append(" / ".join(dict.fromkeys(each)))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parts(nvcc: str, releases: Mapping[str, Counts]) -> dict[Path, str]:
    """Return the generated part of each page."""
    compiler = f"nvcc {nvcc}."
    return {
        DOCS / "variants.md": "\n".join([f"{compiler}\n", *(variants_table(*of) for of in releases.items())]),
        DOCS / "evidence.md": f"CUTLASS {' / '.join(releases)}, {compiler}\n\n{evidence_table(releases)}",
    }


def main(trees: list[str]) -> None:
    """Measure these trees if there are some, and write the record and both pages."""
    if trees:
        toolchain = find_toolchain()
        releases = dict(counted(Path(tree), toolchain) for tree in trees)
        RECORD.write_text(text(toolchain.info.nvcc, releases), encoding="utf-8")
    for page, part in parts(*recorded()).items():
        made_part.write(page, "conversions", part)
