"""Text of ``fp4patch evidence``: the page beside the program, and the statements that a file of a GPU supports."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from fp4patch.commands import measured
from fp4patch.commands.evidence.forms import Form
from fp4patch.commands.evidence.result import Checked, Evidence, KitTree, Outdated, Run
from fp4patch.commands.templates import render
from fp4patch.console import document
from fp4patch.core.wording import counted, listed
from fp4patch.proof.result import VerifyReport


def trees(found: Sequence[KitTree]) -> str:
    """Return ``cutlass 4.2.1 and vllm 0.33.0``."""
    return listed([tree.name for tree in found])


def readme(done: Evidence, reports: Sequence[VerifyReport]) -> str:
    """Return the page that explains the directory, in Markdown."""
    values = {
        "done": done,
        "on": trees(done.kit.trees),
        "reports": reports,
        "programs": [name for name in done.files if name.startswith("fp4patch-evidence-")],
        "conversions": counted(sum(done.kit.conversions.values()), "conversion"),
        "shares": ", ".join(f"{count} for {arch}" for arch, count in done.kit.conversions.items()),
        "measured": {f"{one.target} {one.version}": measured.lines(document(one)) for one in reports},
        "quote": shlex.quote,
    }
    return render("readme.md.j2", Path(__file__).parent, **values)


def summary(done: Evidence) -> str:
    """Return lines about the files that were written."""
    lines = [f"{done.kit.variant} on {trees(done.kit.trees)}: {counted(len(done.files), 'file')} in {done.folder}"]
    lines += [
        f"  {arch}: {counted(count, 'conversion')} in the program" for arch, count in done.kit.conversions.items()
    ]
    lines += [f"  no program for {machine}: {why}" for machine, why in done.no_program.items()]
    return "\n".join(lines)


def checked(found: Checked) -> str:
    """Return what a file of a GPU supports, and what it does not."""
    device = found.device
    lines = [
        f"{found.variant} on {trees(found.trees)}, built by fp4patch {found.fp4patch} with nvcc {found.nvcc}",
        f"ran on {device.name} ({device.arch}), driver {device.driver or 'unknown'}, CUDA {device.cuda}, "
        f"{device.machine}, {found.finished}",
        *_runs(found),
        *(
            f"  {arch}: {counted(count, 'conversion')} of the program without a result"
            for arch, count in found.missing.items()
        ),
        *(f"  {name}: {_OUTDATED[why]}" for name, why in found.outdated.items()),
        f"PASS  every conversion that this GPU can run is right for all inputs{_limit(found.runs)}"
        if not found.verdict.failed
        else "FAIL  the file does not show that every conversion is right",
        "The digests are compared with fp4patch's own record. The checksum detects damage. "
        "Nothing in the file proves who made it.",
    ]
    return "\n".join(lines)


_OUTDATED = {
    Outdated.UNKNOWN: "this fp4patch has no such patch",
    Outdated.OTHER_VERSION: "this fp4patch has another version of the patch",
}


def _runs(found: Checked) -> Iterator[str]:
    for arch in dict.fromkeys(run.arch for run in found.runs):
        runs = [run for run in found.runs if run.arch == arch]
        right = [run for run in runs if run.right]
        values = sum(run.records * run.lanes for run in right)
        yield f"  {arch}: {len(right)} of {counted(len(runs), 'conversion')} right, {values:,} values compared"
        yield from (f"    {run.tree}, {run.probe}: {_wrong(run)}" for run in runs if not run.right)


def _limit(runs: Sequence[Run]) -> str:
    """Return the inputs that did not run: a form may have more pairs of a value and a random byte (``Form.space``)."""
    forms = [Form.parse(run.form) for run in runs]
    in_part = any(form.stochastic and form.input == "float32" for form in forms)
    return ", of float32 with stochastic rounding those with four of 256 random bytes" if in_part else ""


def _wrong(run: Run) -> str:
    if run.error:
        return run.error
    parts = [f"{run.wrong:,} of {run.records * run.lanes:,} values are wrong" if run.wrong else ""]
    if run.first:
        parts.append(f"the first is {run.first.input} to {run.first.got}, not {run.first.expected}")
    if run.exact and run.nan_signs:
        parts.append(f"{run.nan_signs:,} NaNs keep a sign")
    parts.append("it stores behind its output" if run.stray else "")
    return listed([part for part in parts if part])
