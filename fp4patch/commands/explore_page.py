"""The command ``fp4patch explore``: a page with doctor's answer to every question about a recorded release.

An answer is the part of ``fp4patch doctor --json`` about one source tree that depends on the question. It is judged
when the page is made, from what doctor read of the trees (:mod:`fp4patch.doctor.recorded`). Releases share answers: the
page has each distinct one once.
"""

import json
import shlex
import webbrowser
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import click

from fp4patch import __version__
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.target import Target
from fp4patch.commands import templates
from fp4patch.commands.options import FILE
from fp4patch.console import document, write
from fp4patch.core.release import covers
from fp4patch.core.store import cache_dir
from fp4patch.doctor import recorded
from fp4patch.doctor.result import DoctorReport, TreeReport
from fp4patch.doctor.run import question
from fp4patch.doctor.tree import TreeFacts, cuda_of
from fp4patch.doctor.tree_answers import judge, kernels_of, recommend

REPOSITORY = "https://github.com/fp4patch/fp4patch/blob/main/"
MATRIX = "records/matrix.json"
"""Path below the catalog's root of the results of each patch on each release, as ``tools.watch`` recorded them."""
INSTRUCTIONS = "records/instructions.json"
"""Path below the catalog's root of the outcome of each instruction, target and toolkit."""
CUDA = "{cuda}"
"""Stands for the CUDA release of the question in the text of an answer."""
GPUS = {
    "sm_121": "GB10 (DGX Spark)",
    "sm_120": "RTX PRO 6000, RTX 50",
    "sm_120,sm_121": "both, with one build",
}
"""Names of the GPUs by the value of doctor's --for."""
LISTS = ("12.0", "12.1", "12.0;12.1", "12.0f;12.1f", "10.0a;12.0a", "9.0a;10.0a;12.0a;12.1a", "8.0;9.0;10.0;12.0")
"""Arch lists to ask about, beside those of the target: without a suffix, and for several generations at once."""
asking = cache(question)
"""A question of doctor, which is the same for each release."""
ANSWER = ("gpus", "recommended", "findings")
ROW = ("asked", "kernels", "on", "reaches", "stops", "error")
"""Keys of doctor's document about a tree, and about a row of its build, that an answer keeps."""


@click.command(epilog="Example: fp4patch explore -o explorer.html")
@click.option("--output", "-o", type=FILE, help="Write the page to this file, without opening it in a browser.")
def explore(output: Path | None) -> None:
    """Open a page with the answers of doctor for every release.

    They are for each CUDA release, arch list and GPU, before and after the recommended variants.

    The page also has the machine code of each FP4 instruction by compiler and target. It is one file that needs no
    network. Its answers come from the records of this fp4patch.
    """
    file = output or cache_dir() / "explorer.html"
    write(file, page(), advice="name a file that can be written: fp4patch explore -o FILE")
    click.echo(str(file))
    if not output and not webbrowser.open(file.absolute().as_uri()):
        click.echo("there is no browser here: copy the file to a machine that has one, and open it there", err=True)


def page() -> str:
    """Return the page as a complete string. It loads nothing, and runs its own script alone."""
    catalog = load()
    data = answers(catalog.root) | about(catalog)
    return templates.page("explore_page", data=templates.packed(data), version=__version__)


def lists_of(target: Target) -> tuple[str, ...]:
    """Return the arch lists to ask about; the empty one asks for those in common use."""
    if target.build is None:
        return ("",)
    usual = [asked.replace(target.build.separator, ";") for asked in target.build.lists]
    return tuple(dict.fromkeys(["", *usual, *LISTS]))


def answers(root: Path) -> dict[str, Any]:
    """Return the distinct answers as JSON, and their numbers by release, state, CUDA release, arch list and GPU."""
    survey = recorded.read(root)
    texts: dict[str, int] = {}
    releases: dict[tuple[str, str], dict[str, Any]] = {}
    known: dict[Any, dict[str, dict[str, dict[str, int]]]] = {}
    for tree in survey.trees:
        key = tree.state, _of_the_release(tree.facts, survey.cudas)
        if key not in known:
            asked = [*product(survey.cudas, lists_of(tree.facts.tree.target), GPUS)]
            reports = [
                judge(tree.facts, asking((gpus,) if gpus else (), archs or None, cuda)) for cuda, archs, gpus in asked
            ]
            numbers: dict[str, dict[str, dict[str, int]]] = {}
            for (cuda, archs, gpus), text in zip(asked, texts_of(reports, [cuda for cuda, _, _ in asked]), strict=True):
                numbers.setdefault(cuda, {}).setdefault(archs, {})[gpus] = texts.setdefault(text, len(texts))
            known[key] = numbers
        release = {"target": tree.target, "version": tree.version, "states": {}}
        releases.setdefault((tree.target, tree.version), release)["states"][tree.variant] = known[key]
    return {"cudas": survey.cudas, "releases": [*releases.values()], "answers": [*texts]}


def _of_the_release(facts: TreeFacts, cudas: Sequence[str]) -> tuple[Any, ...]:
    """Return what an answer takes from a tree's release, beside its state: advice and defects."""
    tree = facts.released
    advice = [recommend(tree, cuda_of(asking((), None, cuda))) for cuda in cudas]
    defects = tuple(covers(defect.versions, tree.version) for defect in tree.target.defects)
    return (tree.target.name, facts.variant, str(advice), defects)


def texts_of(reports: Sequence[TreeReport], cudas: Sequence[str]) -> Iterator[str]:
    """Yield doctor's answer of each report; ``./TARGET`` stands for the tree's directory, CUDA for its release."""
    trees = document(DoctorReport(None, tuple(reports), (), ()))["trees"]
    for tree, cuda in zip(trees, cudas, strict=True):
        kept = {key: tree[key] for key in ANSWER} | {
            "builds": [{key: row[key] for key in ROW} for row in tree["builds"]]
        }
        text = json.dumps(kept, ensure_ascii=False)
        yield text.replace(shlex.quote(tree["tree"]), f"./{tree['target']}").replace(cuda, CUDA)


def about(catalog: Catalog) -> dict[str, Any]:
    """Return what the page shows of GPUs, targets, patches, variants, the matrix and the instructions."""
    return {
        "repository": REPOSITORY,
        "gpus": GPUS,
        "targets": {
            target.name: {
                "title": target.title,
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
                "link": patch.link,
                "variants": [variant.name for variant in catalog.variants.values() if patch.id in variant.patch_ids],
            }
            for patch in catalog.patches.values()
        },
        "variants": {variant.name: variant.title for variant in catalog.variants.values()},
        "matrix": recorded.record_of(catalog.root, MATRIX)["rows"],
        "instructions": recorded.record_of(catalog.root, INSTRUCTIONS),
    }
