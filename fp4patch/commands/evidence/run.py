"""``fp4patch evidence``: write what proves a variant to others, with the program that a GPU's owner runs."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.manifest import load
from fp4patch.commands import verify_page as page
from fp4patch.commands.evidence import kit
from fp4patch.commands.evidence.forms import MOST, Form
from fp4patch.commands.evidence.gpu_file import KitInfo
from fp4patch.commands.evidence.kit import Kernel
from fp4patch.commands.templates import render
from fp4patch.console import as_json, write
from fp4patch.core.document import Report
from fp4patch.core.errors import Fp4PatchError, Refused, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.results import Verdict
from fp4patch.proof.result import VerifyReport, whole
from fp4patch.proof.toolchain import find_toolchain
from fp4patch.proof.verify import VerifyRequest, verify_trees


@dataclass(frozen=True)
class Evidence(Report):
    """The files that were written."""

    folder: str
    kit: KitInfo
    files: tuple[str, ...]
    """Paths in the directory."""
    no_program: dict[str, str]
    """Kinds of machines without a program, each with the reason."""


def evidence(trees: Sequence[Path], folder: Path, variant: str, archs: str, on_progress: OnProgress) -> Evidence:
    """Verify the trees and write the results and the program to ``folder``.

    Without ``archs`` for the variant's targets but those of a family, whose code its GPUs' own targets have too.
    Refused if a tree does not pass, or no kernel of them can run alone.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise Fp4PatchError(f"{folder} is not empty", help="name another directory with --output")
    archs = archs or ",".join(arch for arch in load().variant(variant).arch if not arch.endswith("f"))
    request = VerifyRequest(variant=variant, archs=archs, execute=True)
    reports = verify_trees(trees, request, on_progress=on_progress)
    for report in reports:
        if report.verdict is not Verdict.PASS:
            raise Refused(
                f"{variant} does not pass on {report.tree}, and there is nothing to prove",
                problems=report.problems,
                help=f"fp4patch verify --variant {variant} {report.tree}",
            )
    patches = {_name(report): report.patches for report in reports}
    if len(patches) < len(reports):
        raise UsageError(f"there are two trees of one release: {', '.join(patches)}", help="name each release once")
    kernels = list(_kernels(reports))
    if not kernels:
        raise Refused("no kernel of these trees converts values and does nothing else", help="name a tree with kernels")
    tools = reports[0].toolchain
    counts = dict(Counter(str(kernel.arch) for kernel in kernels))
    info = KitInfo(__version__, variant, tools.nvcc, tools.ptxas, patches, counts)
    write(folder / "verify.json", as_json(whole(reports)) + "\n")
    write(folder / "report.html", page.page(reports))
    no_program = kit.build(folder, kernels, info, find_toolchain())
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    done = Evidence(str(folder), info, (*sorted(files), "README.md"), no_program)
    programs = [name for name in done.files if name.startswith(kit.NAME)]
    readme = render(
        "readme.md.j2", Path(__file__).parent, done=done, reports=reports, programs=programs, quote=shlex.quote
    )
    write(folder / "README.md", readme)
    return done


def _name(report: VerifyReport) -> str:
    return f"{report.target} {report.version}".strip()


def _kernels(reports: Sequence[VerifyReport]) -> Iterator[Kernel]:
    """Yield the kernels for the program: those that are a conversion alone, of which all inputs can run."""
    catalog = load()
    for report in reports:
        variant = catalog.variant(report.variant)
        forms = {
            probe.id: Form.of(probe.executes)
            for probe, _ in catalog.probes_of(variant, report.target)
            if probe.executes
        }
        for result in report.results:
            form = forms.get(result.probe)
            if form and result.after and form.space <= MOST:
                cubin = report.cubins[result.probe, result.arch, "patched"]
                yield Kernel(_name(report), result.probe, result.arch, cubin, form, variant.promise)
