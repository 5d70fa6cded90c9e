"""Report of ``fp4patch doctor`` as text, and its findings about compiled code."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.binaries.findings import Level
from fp4patch.binaries.report import BinaryFile, BinaryReport, ImageGroup, LoadOutcome
from fp4patch.commands.doctor_proof_text import proof_text
from fp4patch.commands.doctor_text import COLOUR, MARK, answers_text, log_text, machine_text, project_text, tree_text
from fp4patch.console import Hanging, printable
from fp4patch.core.arch import Arch
from fp4patch.core.wording import counted, listed
from fp4patch.doctor.result import DoctorReport


def table(report: BinaryReport, *, details: bool = False) -> RenderableType:
    """Return the answers; with ``details`` also each file with its architectures and the contents of its FP4 code."""
    parts: list[RenderableType] = [answers_text(report.answers)]
    for one in report.compilers:
        if one.level is Level.GREEN and not details:
            continue
        release = f" {one.release}" if one.release else ""
        support = f"does not support {listed(one.unsupported)}" if one.unsupported else "supports every requested GPU"
        what = Text(f"{MARK[one.level]} {one.role}{release}", COLOUR[one.level])
        parts.append(what.append(f" ({printable(one.name)}) {support}; {one.used_by}", ""))
        parts += [Hanging("  → ", one.remedy)] if one.remedy else []
    for row in report.requirements:
        level = Level.GREEN if row.met else Level.RED
        said = f" required {row.requirement}: {'met' if row.met else 'not met'}"
        parts.append(Text(MARK[level] + said, COLOUR[level]))
        parts += [Hanging("    ", reason) for reason in row.because]
    for unread in report.unread:
        parts.append(
            Hanging("✗ not read: ", f"{printable(unread.name)}: {printable(unread.because)}", COLOUR[Level.RED])
        )
        parts.append(Hanging("  → ", unread.help))
    if details:
        for file in report.files:
            parts += [Text(), _file(file)]
    more = "" if details or not report.files else "; --details lists them"
    said = f"{_bytes(report.size)}, {counted(report.searched, 'file')} read, {len(report.files)} with device code{more}"
    said += f"; built from a tree with the variant {report.variant} of fp4patch" if report.variant else ""
    parts += [Text.assemble((printable(report.source), "bold"), (f"  {said}", "dim")), Text()]
    return Group(*parts)


def _file(file: BinaryFile) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble((printable(file.name), "bold"), f"  {_bytes(file.size)}, {counted(file.fatbins, 'fatbin')}")
    ]
    parts.append(Hanging("  ", _architectures(file.images)))
    parts += [_code(group) for group in file.images if group.code.native or group.code.encoders]
    for gpu in dict.fromkeys(row.gpu for row in file.loading):
        parts.append(_loading(file, gpu))
    return Group(*parts)


def _architectures(groups: Sequence[ImageGroup]) -> str:
    """Return a summary: ``sm_90a ×24, sm_120f ×35, compute_80 ×19``."""
    numbers = Counter[str]()
    for group in groups:
        numbers[group.arch] += group.count
    return ", ".join(f"{arch} ×{number}" for arch, number in numbers.items())


def _code(group: ImageGroup) -> Hanging:
    code = group.code
    facts = [
        counted(code.hardware, "hardware conversion") if code.hardware else "",
        *(f"{counted(number, 'value')} by {name}" for name, number in code.encoders.items()),
        counted(code.decodings, "decoding") if code.decodings else "",
        counted(code.matrix, "FP4 matrix instruction") if code.matrix else "",
    ]
    return Hanging(f"  {group.arch}: ", ", ".join(filter(None, facts)), "bold")


def _loading(file: BinaryFile, gpu: Arch) -> RenderableType:
    rows = [row for row in file.loading if row.gpu == gpu]
    loads = Counter[str]()
    for row in rows:
        loads[row.loads] += row.fatbins
    text = ", ".join(f"{name} ×{number}" for name, number in loads.most_common())
    lost = sum(row.fatbins for row in rows if row.outcome is LoadOutcome.LOST)
    if lost:
        text += f"; {counted(lost, 'fatbin')} without their FP4 code"
    return Hanging(f"  {gpu} loads ", text, "bold red" if lost else "")


def _bytes(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


def report_text(report: DoctorReport, *, details: bool) -> RenderableType:
    """Return everything that is known about one PATH."""
    parts = [machine_text(report.machine)] if report.machine else []
    parts += [tree_text(tree, details=details) for tree in report.trees]
    parts += [project_text(project, details=details) for project in report.projects]
    parts += [table(binary, details=details) for binary in report.binaries]
    parts += [proof_text(proof) for proof in report.proofs]
    return Group(*parts, *(log_text(log) for log in report.logs))
