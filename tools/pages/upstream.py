"""Write the title, message, patch and table of each pull request in docs/upstream.

``python -m tools.regenerate upstream TREE…`` takes trees to which next3 is applied, of the releases that PULLS names,
and writes the pages of their targets (minutes: it verifies the trees, and executes their machine code).
tests/tools/test_upstream.py compares titles, messages and patches with what ``fp4patch export`` writes today.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from fp4patch.commands.export import series
from fp4patch.core import progress
from fp4patch.core.wording import counted
from fp4patch.proof.builds import check_id
from fp4patch.proof.execution.result import summary
from fp4patch.proof.result import VerifyReport
from fp4patch.proof.verify import VerifyRequest, verify_trees
from tools.pages._made_part import placed

FOLDER = Path(__file__).parents[2] / "docs/upstream"
VARIANT, ARCHS = "next3", "sm_120a,sm_121a,sm_121"
LONGEST = 600
"""Lines of a patch that the repository holds; of a longer one the page has the command alone."""


@dataclass(frozen=True)
class Pull:
    """One pull request: its page, and the patch that it hands over."""

    page: str
    target: str
    version: str
    patch: str
    probes: tuple[str, ...] = ()
    """Globs of the probes in its table; none: the table has the arch lists."""
    archs: str = ARCHS
    """Targets in its table."""


PULLS = (
    Pull("cutlass-constructor", "cutlass", "4.8.0", "e2m1-constructor", ("cutlass/construct-*-x8",)),
    Pull(
        "cutlass-encode",
        "cutlass",
        "4.8.0",
        "e2m1-encode",
        ("cutlass/encode-float", "cutlass/encode-*-x8", "cutlass/encode-gemv-epilogue"),
    ),
    Pull(
        "cutlass-decode", "cutlass", "4.8.0", "e2m1-decode", ("cutlass/decode-value-x8", "cutlass/decode-bfloat16-x8")
    ),
    Pull("cutlass-stages", "cutlass", "4.8.0", "sm120-stages", ("cutlass/shared-memory",), archs="sm_120a,sm_121a"),
    Pull("vllm-architectures", "vllm", "0.33.0", "cmake-sm121a"),
    Pull("vllm-native-code", "vllm", "0.33.0", "native-arch"),
    Pull(
        "flashinfer-conversions",
        "flashinfer",
        "0.7.2",
        "e2m1-asm",
        ("flashinfer/float2x*-to-e2m1", "flashinfer/bf16-block-to-nvfp4", "flashinfer/half-matrix-to-nvfp4"),
    ),
    Pull("qutlass-family", "qutlass", "0.2.0", "sm120-family", ("qutlass/*",)),
    Pull("transformer-engine-architectures", "transformer_engine", "2.18.0", "arch-list"),
    Pull("transformer-engine-backport", "transformer_engine", "2.18.0", "e2m1-stochastic", ("*/*-x4",)),
    Pull("mlx-family", "mlx", "0.32.1", "family-guard", ("mlx/*",), archs="sm_120a,sm_120f,sm_121a,sm_121f"),
)


def mail(pull: Pull, tree: Path) -> str:
    """Return the patch of a pull request as a mail for ``git am``."""
    (made,) = series(tree, VARIANT, [pull.patch], "git-am", pull.version).files.values()
    return made


def message(pull: Pull, made: str) -> str:
    """Return the part of the page that comes from the patch: title, message, and the patch or its command."""
    _, _, rest = made.partition("\n\n")
    body, _, diff = rest.removesuffix("-- \nfp4patch\n\n").partition("\n---\n")
    title = load().patches[f"{pull.target}/{pull.patch}"].title
    added, removed = (len(re.findall(rf"^\{sign}(?!\{sign}\{sign} )", diff, re.MULTILINE)) for sign in "+-")
    files = len(re.findall(r"^diff --git", diff, re.MULTILINE))
    command = f"fp4patch export --variant {VARIANT} --patch {pull.patch} {pull.target} -o DIR"
    there = f"[{pull.page}.patch]({pull.page}.patch), for `git am`, " if _is_kept(made) else ""
    of = f"{counted(files, 'file')} of {pull.target} {pull.version}"
    changed = f"{there}changes {of}: {counted(added, 'line')} added, {removed:,} removed."
    lines = [
        "## Title",
        "",
        f"    {title}",
        "",
        "## Message",
        "",
        *(f"    {line}".rstrip() for line in body.strip().splitlines()),
        "",
        "## Patch",
        "",
        changed[0].upper() + changed[1:],
        "",
        "<!-- run by tests/tools/test_upstream.py -->",
        "",
        f"    {command}",
        "",
    ]
    return "\n".join(lines)


def _is_kept(made: str) -> bool:
    return made.count("\n") <= LONGEST


def table(pull: Pull, report: VerifyReport) -> str:
    """Return what verify measured before and after."""
    tools = report.toolchain
    command = f"fp4patch verify --variant {VARIANT} --arch {pull.archs} --execute"
    how = f"`{command}`, nvcc {tools.nvcc}, {report.target} {report.version}"
    ran = f"<!-- run by docs/upstream/README.md: `{command}` -->"  # every week
    rows = list(_code(pull, report) if pull.probes else _builds(pull, report))
    what = [":", "", *rows] if rows else [": this patch changes no probe and no arch list of these."]
    return "\n".join([ran, "", how + what[0], *what[1:], ""])


def _code(pull: Pull, report: VerifyReport) -> Iterator[str]:
    every = report.executed.executions
    executed = {(one.probe, one.arch): one for one in every if one.side == "patched"}
    yield "| probe | target | instructions | branches | executed on a CPU |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[str, str, str], list[str]] = {}
    for result in report.results:
        if (after := result.after) and any(fnmatchcase(result.probe, pattern) for pattern in pull.probes):
            one, before = executed.get((result.probe, result.arch)), result.before
            old = (f"{before.size:,}", str(before.branches)) if before else ("does not compile", "")
            name = result.probe.partition("/")[2]
            counts = f"{old[0]} → {after.size:,} | {old[1]} → {after.branches}"
            rows.setdefault((name, counts, summary(one) if one else ""), []).append(str(result.arch))
    yield from (f"| {name} | {', '.join(archs)} | {counts} | {ran} |" for (name, counts, ran), archs in rows.items())


def _builds(pull: Pull, report: VerifyReport) -> Iterator[str]:
    patch = load().patches[f"{pull.target}/{pull.patch}"]
    names = {check_id(patch, check) for check in patch.builds}
    builds = [build for build in report.builds if build.check in names]
    if builds:
        yield "| arch list | CUDA | before | after |"
        yield "|---|---|---|---|"
    rows: dict[tuple[str, str, str], list[str]] = {}
    for build in builds:
        rows.setdefault((build.asked, build.before, build.after), []).append(build.cuda)
    yield from (f"| `{asked}` | {', '.join(of)} | {old} | {new} |" for (asked, old, new), of in rows.items())


def with_parts(page: str, pull: Pull, made: str, measured: str | None = None) -> str:
    """Return the page with its parts made again; without ``measured`` its table stays."""
    page = placed(page, f"upstream {pull.page}", message(pull, made))
    return page if measured is None else placed(page, f"upstream {pull.page} table", measured)


def main(arguments: Sequence[str]) -> None:
    """Write the pages and patches of the trees' targets."""
    for tree in map(Path, arguments):
        known = identify(tree, load())
        chosen = [pull for pull in PULLS if pull.target == known.target.name]
        if not chosen or str(known.version) != chosen[0].version:
            sys.exit(f"{tree} is {known.target.name} {known.version}, of which no page is")
        options = VerifyRequest(variant=VARIANT, archs=chosen[0].archs, execute=True, jobs=1)
        report = verify_trees([tree], options, on_progress=progress.silent)[0]
        for pull in chosen:
            made = mail(pull, tree)
            if _is_kept(made):
                (FOLDER / f"{pull.page}.patch").write_text(made, encoding="utf-8")
            page = FOLDER / f"{pull.page}.md"
            page.write_text(
                with_parts(page.read_text(encoding="utf-8"), pull, made, table(pull, report)), encoding="utf-8"
            )
