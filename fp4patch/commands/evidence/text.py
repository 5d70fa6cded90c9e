"""Text of ``fp4patch evidence``: the page beside the program, and the statements that a file of a GPU supports."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from fp4patch.commands import measured
from fp4patch.commands.document import document
from fp4patch.commands.evidence.forms import Form
from fp4patch.commands.evidence.result import Checked, Evidence, KitTree, Outdated, Run
from fp4patch.core.wording import counted, listed
from fp4patch.proof.result import VerifyReport


def trees(found: Sequence[KitTree]) -> str:
    """Return ``cutlass 4.2.1 and vllm 0.33.0``."""
    return listed([tree.name for tree in found])


def readme(done: Evidence, reports: Sequence[VerifyReport]) -> str:
    """Return the page that explains the directory, in Markdown."""
    programs = [name for name in done.files if name.startswith("fp4patch-evidence-")]
    tools = reports[0].toolchain
    lines = [
        f"# {done.kit.variant} on {trees(done.kit.trees)}",
        "",
        f"Made by fp4patch {done.kit.fp4patch}; every tree passes. These commands make it again:",
        "",
        *(f"    fp4patch apply --variant {one.variant} {shlex.quote(one.tree)}" for one in reports),
        f"    fp4patch evidence --variant {done.kit.variant} --arch {','.join(map(str, reports[0].arch))} "
        f"{' '.join(shlex.quote(one.tree) for one in reports)} -o DIR",
        "",
        f"Compiled by nvcc {tools.nvcc}, cicc {tools.cicc}, ptxas {tools.ptxas} and {tools.host_compiler}, "
        f"disassembled by nvdisasm {tools.nvdisasm}.",
        "",
        "| file | content |",
        "|---|---|",
        "| `report.html` | both listings of each probe, with every rule and its result |",
        "| `verify.json` | the same as data, with the results of executing the machine code on a CPU |",
        "| `listings/` | the machine code of each probe before and after, one file each |",
        "| `kit.json` | the origin of the machine code in the program |",
        *(f"| `{name}` | the program for owners of a GPU |" for name in programs),
        "| `source/` | its source with the machine code; `sh source/build.sh` builds it with a C compiler alone |",
        "",
        "## Run it on a GPU",
        "",
        f"    ./{programs[0] if programs else 'source/fp4patch-evidence'} -o result.json",
        "",
        f"It runs {counted(sum(done.kit.conversions.values()), 'conversion')} "
        f"({', '.join(f'{count} for {arch}' for arch, count in done.kit.conversions.items())}), those that the GPU can "
        "load, over all inputs, but with four of 256 random bytes for each float32 that is rounded stochastically. It "
        "needs the driver and no CUDA toolkit. "
        "`fp4patch evidence --check result.json` reports what the file supports.",
        *(
            ["", *(f"No program for {machine}: {why}." for machine, why in done.no_program.items())]
            if done.no_program
            else []
        ),
        *(
            ["", "Not in the program:", "", *(f"- `{name}`: {why}" for name, why in done.not_run.items())]
            if done.not_run
            else []
        ),
    ]
    for report in reports:
        title = f"{report.target} {report.version}"
        lines += ["", f"## Measured on {title}", "", *(f"    {line}" for line in measured.lines(document(report)))]
    return "\n".join([*lines, ""])


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
