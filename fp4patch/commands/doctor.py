"""The command that inspects and changes nothing: this machine, source trees, binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fp4patch.commands.options import NAME, json_option
from fp4patch.console import emit, show, waiting
from fp4patch.core.errors import EXIT_REFUSED, NothingCompiledError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from fp4patch.binaries.report import BinaryReport
    from fp4patch.doctor.result import Question, RecipeReport, TreeReport
    from fp4patch.images.image import ProofReport


@click.command()
@click.argument("paths", metavar="[PATH...]", nargs=-1, type=NAME)
@click.option("--for", "gpus", metavar="GPUS", help="Check for these GPUs only, for example sm_121 or sm_120,sm_121.")
@click.option(
    "--arch-list",
    "--torch-cuda-arch-list",
    "arch_list",
    metavar="LIST",
    help="TORCH_CUDA_ARCH_LIST, or the build's own. Default: the usual lists.",
)
@click.option("--cuda", metavar="V", help="CUDA release of the build, for example 13.0. Default: the installed one.")
@click.option(
    "--python",
    metavar="PATH",
    default="",
    help="Check the packages of this Python or virtual environment. Default: VIRTUAL_ENV.",
)
@click.option(
    "--require",
    metavar="GPU[:native|:variant=NAME]",
    multiple=True,
    help="Fail unless every compiled file has code, or FP4 instructions, or all have what a variant makes.",
)
@click.option("--only", metavar="PATTERN", multiple=True, help="--require concerns only files like libtorch*.so.")
@click.option("--except", "excepted", metavar="PATTERN", multiple=True, help="--require does not concern these files.")
@click.option("--details", is_flag=True, help="List every file with its code, and a tree's patches and build.")
@json_option("fp4patch.doctor.result:DoctorReport")
def doctor(
    paths: tuple[str, ...],
    gpus: str | None,
    arch_list: str | None,
    cuda: str | None,
    python: str,
    require: tuple[str, ...],
    only: tuple[str, ...],
    excepted: tuple[str, ...],
    details: bool,
    as_json: bool,
) -> None:
    """Check this machine, or each PATH, for FP4 support.

    A PATH is a source tree, a wheel, a .so, a cubin or another file with device code, a directory of them, an
    installed package, the name of an image, or a release (vllm==0.33.0), whose source is recorded. Of an image or a
    directory by `fp4patch build`, the labels and the proof are checked too.

    Doctor runs the CMakeLists.txt of a vLLM tree, and functions of FlashInfer's own Python, as a build would. Their
    usual ways to write are replaced, which is a convenience and not a protection.

    Exit status: 0 if no answer is no, 1 if one is or if nothing was judged, 2 if a PATH or a GPU does not exist. With
    --require: 0 if all requirements are met and everything was read, else 1.
    """
    from fp4patch.binaries.findings import Level
    from fp4patch.catalog.manifest import load
    from fp4patch.commands import doctor_binaries_text as binary_report
    from fp4patch.commands import doctor_proof_text as proof_report
    from fp4patch.commands import doctor_text as report
    from fp4patch.doctor import run as verb
    from fp4patch.doctor.recorded import examine_release
    from fp4patch.doctor.result import DoctorReport

    question = verb.question(gpus, arch_list, cuda, require, only, excepted)
    compiled_only = bool(question.required)
    if compiled_only and not paths:
        raise UsageError(
            "--require applies to compiled files only", help="name a wheel, a library, a directory or an image"
        )
    if (only or excepted) and not compiled_only:
        raise UsageError("--only and --except apply to --require", help="add --require sm_121:native")
    if python and paths:
        raise UsageError("--python applies to this machine only", help="omit every PATH")
    machine = None if paths else verb.examine_machine(question, python)
    if machine and not as_json:
        show(report.machine_text(machine))
    trees: list[TreeReport] = []
    recipes: list[RecipeReport] = []
    binaries: list[BinaryReport] = []
    proofs: list[ProofReport] = []
    for path in paths:
        if verb.is_release(path):
            trees.append(examine_release(load().root, path, question))
            if not as_json:
                show(report.tree_text(trees[-1], details=details))
            continue
        where = verb.find(path)
        known = () if compiled_only else verb.as_trees(where)
        found = list(verb.examine_trees(known, question, on_wait=waiting)) if known else []
        recipe = None if compiled_only else verb.examine_recipes(where, tree=bool(known))
        proof = None if known else verb.examine_proof(where, path)
        compiled = (
            None if known else _compiled(where, path, question, optional=not compiled_only and bool(recipe or proof))
        )
        trees += found
        recipes += [recipe] if recipe else []
        binaries += [compiled] if compiled else []
        proofs += [proof] if proof else []
        if not as_json:
            shown = [report.tree_text(tree, details=details) for tree in found]
            shown += [binary_report.table(compiled, details=details)] if compiled else []
            shown += [report.recipe_text(recipe)] if recipe else []
            shown += [proof_report.proof_text(proof)] if proof else []
            for part in shown:
                show(part)
    whole = DoctorReport(machine, tuple(trees), tuple(recipes), tuple(binaries), tuple(proofs))
    if as_json:
        emit(whole)
    if whole.verdict in (Level.RED, Level.NONE):
        raise click.exceptions.Exit(EXIT_REFUSED)


def _compiled(where: Path | None, name: str, question: Question, *, optional: bool) -> BinaryReport | None:
    """Look into compiled code, and show how far that is; None where there is none and that is ``optional``."""
    from fp4patch.console import progress_bar
    from fp4patch.doctor import run as verb

    try:
        with progress_bar("bytes") as tick:
            return verb.examine_binary(where, name, question, on_step=tick)
    except NothingCompiledError:
        if optional:
            return None
        raise
