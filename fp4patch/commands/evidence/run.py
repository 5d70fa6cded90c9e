"""``fp4patch evidence``: write what proves a variant to others, and read what a GPU made of it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.variant import Variant
from fp4patch.commands import verify_page as page
from fp4patch.commands.evidence import kit, text
from fp4patch.commands.evidence.forms import MOST, Form, digests
from fp4patch.commands.evidence.kit import Kernel
from fp4patch.commands.evidence.result import Checked, Evidence, EvidenceFile, KitInfo, KitTree, Outdated, Run
from fp4patch.console import as_json, write
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Fp4PatchError, Refused, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.verdict import Verdict
from fp4patch.proof.result import VerifyReport, whole
from fp4patch.proof.toolchain import find_toolchain
from fp4patch.proof.verify import VerifyRequest, verify_trees
from fp4patch.tree.locked import OnWait


def evidence(
    trees: Sequence[Path], folder: Path, options: VerifyRequest, *, on_wait: OnWait, on_progress: OnProgress
) -> Evidence:
    """Verify the trees and write the results and the program to ``folder``.

    Refused if a tree does not pass, or no kernel of them can run alone.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise Fp4PatchError(f"{folder} is not empty", help="name another directory with --output")
    catalog = load()
    reports = verify_trees(trees, options, on_wait=on_wait, on_progress=on_progress)
    variant = catalog.variant(reports[0].variant)
    for report in reports:
        if report.verdict is not Verdict.PASS:
            raise Refused(
                f"{report.variant} does not pass on {report.tree}, and there is nothing to prove",
                problems=report.problems,
                help=f"fp4patch verify --variant {report.variant} {report.tree}",
            )
    known = [KitTree(one.target, one.version, one.patches) for one in reports]
    if twice := [name for name, times in Counter(tree.name for tree in known).items() if times > 1]:
        raise UsageError(f"there are two trees of {twice[0]}", help="name each release once")
    kernels, not_run = _kernels(catalog, variant, reports, known)
    if not kernels:
        raise Refused("no kernel of these trees converts values and does nothing else", help="name a tree with kernels")
    tools = reports[0].toolchain
    info = KitInfo(
        __version__,
        variant.name,
        tools.nvcc,
        tools.ptxas,
        tuple(known),
        dict(Counter(str(kernel.arch) for kernel in kernels)),
    )
    write(folder / "verify.json", as_json(whole(reports)) + "\n")
    write(folder / "report.html", page.page(reports))
    for path, listing in _listings(reports):
        write(folder / "listings" / path, listing)
    title = f"fp4patch {info.fp4patch}: {info.variant} on {text.trees(info.trees)}"
    no_program = kit.build(folder, kernels, info, title, find_toolchain(options.cuda_root))
    files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    done = Evidence(str(folder), info, (*files, "README.md"), no_program, not_run)
    write(folder / "README.md", text.readme(done, reports))
    return done


def default_archs(variant: Variant) -> str:
    """Return the variant's targets without those of a family, whose code its GPUs' own targets have too."""
    return ",".join(arch for arch in variant.arch if not arch.endswith("f"))


def _kernels(
    catalog: Catalog, variant: Variant, reports: Sequence[VerifyReport], trees: Sequence[KitTree]
) -> tuple[list[Kernel], dict[str, str]]:
    """Return the kernels for the program, and the probes without one, each with the reason."""
    kernels, not_run = [], dict[str, str]()
    for report, tree in zip(reports, trees, strict=True):
        probes = {probe.id: probe for probe, _ in catalog.probes_of(variant, report.target)}
        not_run |= {f"{tree.name}, {one.probe}": one.because for one in report.set_aside}
        for result in report.results:
            executes = probes[result.probe].executes
            if executes and result.after and Form.of(executes).space <= MOST:
                cubin = report.cubins[result.probe, result.arch, "patched"]
                form = Form.of(executes)
                kernels.append(Kernel(tree.name, result.probe, result.arch, cubin, form, variant.promise))
            else:
                not_run[f"{tree.name}, {result.probe}"] = _because(probes[result.probe])
    return kernels, not_run


def _because(probe: Probe) -> str:
    """Return the reason why no kernel of a probe is in the program."""
    if probe.kind is ProbeKind.HOST:
        return "it is host code"
    if probe.quantizes:
        return "its results depend on the GPU's reciprocal"
    if probe.launches:
        return "it is a whole kernel of upstream's"
    if probe.executes:
        return (
            "it does not compile for the target" if Form.of(probe.executes).space <= MOST else "it has too many inputs"
        )
    return "it is compiled, and is no conversion alone"


def _listings(reports: Sequence[VerifyReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        for result in report.results:
            name = result.probe.partition("/")[2]
            for side, listing in (("pristine", result.before), ("patched", result.after)):
                if listing:
                    path = f"{report.target}-{report.version}/{name}.{result.arch}.{side}.sass"
                    yield path, "\n".join([*listing.listing, ""])


_CHECKSUM = re.compile(rb',\n  "checksum": "([0-9a-f]{16})"\n\}\n')
_HELP = "ask for the file as the program wrote it, attached and not pasted"


def check(file: Path) -> Checked:
    """Return what a program's JSON file supports; Fp4PatchError if it is damaged, unknown, or contradicts itself."""
    found = _read(file)
    catalog = load()
    if found.kit.variant not in catalog.variants:
        raise Fp4PatchError(
            f"{file} is about the variant {found.kit.variant}, which this fp4patch does not have",
            help=f"use fp4patch {found.kit.fp4patch}, which built the program",
        )
    gpu = Arch.parse(found.device.arch)
    seen = Counter(f"{run.tree}, {run.probe} {run.arch}" for run in found.runs)
    problems = [f"{name} occurs {times} times" for name, times in seen.items() if times > 1]
    problems += [
        f"{run.tree}, {run.probe} {run.arch}: {why}" for run in found.runs if (why := _contradiction(run, gpu))
    ]
    if problems:
        raise Fp4PatchError(f"{file} contradicts itself: {'; '.join(problems[:3])}", help=_HELP)
    wanted = {arch: count for arch, count in found.kit.conversions.items() if Arch.parse(arch).runs_on(gpu)}
    done = Counter(run.arch for run in found.runs)
    patches = {patch.id: str(patch.version) for patch in catalog.patches.values()}
    outdated = {
        f"{name} {version}": Outdated.OTHER_VERSION if name in patches else Outdated.UNKNOWN
        for tree in found.kit.trees
        for name, _, version in (applied.partition(" ") for applied in tree.patches)
        if patches.get(name) != version
    }
    return Checked(
        str(file),
        found.kit.variant,
        found.kit.fp4patch,
        found.kit.nvcc,
        found.kit.trees,
        found.device,
        found.finished,
        found.runs,
        {arch: count - done[arch] for arch, count in wanted.items() if count > done[arch]},
        outdated,
    )


def _read(file: Path) -> EvidenceFile:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - it takes a while to load

    try:
        content = file.read_bytes()
    except OSError as error:
        raise Fp4PatchError(
            f"cannot read {file}: {error.strerror}", help="name the JSON file of the program"
        ) from error
    if b'"fp4patch-evidence"' not in content:
        raise Fp4PatchError(
            f"{file} is not a file of {kit.NAME}", help="name the JSON that the program wrote, not its output"
        )
    if (schema := re.search(rb'\n  "schema": (\d+),', content)) and schema[1] != b"1":
        raise Fp4PatchError(
            f"{file} has form {schema[1].decode()}, and this fp4patch reads form 1", help="update fp4patch"
        )
    end = _CHECKSUM.search(content)
    if end is None or end.end() != len(content):
        raise Fp4PatchError(f"{file} is incomplete, or another program has written it anew", help=_HELP)
    if checksum(content[: end.start()]) != int(end[1], 16):
        raise Fp4PatchError(f"{file} was changed after the program wrote it: its checksum is wrong", help=_HELP)
    try:
        found = TypeAdapter(EvidenceFile).validate_json(content, strict=True)
        Arch.parse_list(",".join([found.device.arch, *found.kit.conversions, *(run.arch for run in found.runs)]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Fp4PatchError(f"{file} has no valid {where or 'JSON'}: {first['msg']}", help=_HELP) from error
    except ValueError as error:
        raise Fp4PatchError(f"{file} has no valid architecture: {error}", help=_HELP) from error
    return found


def checksum(content: bytes) -> int:
    """Return FNV-1a of 64 bits, as the program computes it."""
    found = 0xCBF29CE484222325
    for byte in content:
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found


def _contradiction(run: Run, gpu: Arch) -> str:
    """Return the reason why a program cannot have written this; empty if it can."""
    if not Arch.parse(run.arch).runs_on(gpu):
        return f"this code does not run on {gpu}"
    if run.error:
        return ""
    expected = digests().get(run.form)
    if expected is None:
        return f"the form {run.form!r} is unknown"
    form = Form.parse(run.form)
    if (run.records, run.lanes) != (1 << form.space, form.lanes):
        return f"{run.records:,} records of {run.lanes} are not all inputs"
    as_expected = run.digest == f"{expected:016x}"
    if as_expected != (run.wrong == 0):
        return f"{run.wrong:,} wrong values, and the digest {'is' if as_expected else 'is not'} the expected one"
    return ""
