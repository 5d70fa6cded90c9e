"""``fp4patch bench``: how fast the encoders are on this machine's GPU, and the trees before and after their patches."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.commands.bench import measure as proof
from fp4patch.commands.bench.result import BenchReport
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ToolchainError, UsageError
from fp4patch.proof import numerics
from fp4patch.proof.callables import FORCE_SOFTWARE, callables, include_folders, subjects
from fp4patch.proof.gpu import find_gpu
from fp4patch.proof.needs import has
from fp4patch.proof.toolchain import find_toolchain
from fp4patch.proof.view import Side, SourceView
from fp4patch.tree.locked import reading
from fp4patch.tree.transaction import OnWait

PROGRAM, RUNNER, RESULT = "fp4patch-bench", "run.sh", "bench.txt"

_RUNNER = f"""\
#!/bin/sh
# Measures on this machine's GPU and writes {RESULT} beside itself: give it to `fp4patch bench --from {RESULT}`.
set -eu
cd "$(dirname "$0")"
./{PROGRAM} > {RESULT}
"""


@dataclass(frozen=True)
class Built:
    """A program for another machine."""

    folder: Path
    arch: Arch
    notes: tuple[str, ...]


def bench(trees: Sequence[Path], *, cuda_root: Path | None, on_wait: OnWait) -> BenchReport:
    """Build for this machine's GPU and measure there. ToolchainError without a GPU."""
    gpu = find_gpu()
    if gpu is None:
        raise ToolchainError(
            "there is no CUDA GPU in this machine",
            help="build the program for another one with --build-only DIR --gpu-arch sm_121, run it there, "
            "and show what it measured with --from FILE",
        )
    with tempfile.TemporaryDirectory(prefix="fp4patch-bench-") as folder:
        build(trees, Path(folder), gpu.arch, cuda_root=cuda_root, on_wait=on_wait)
        return proof.run(Path(folder) / PROGRAM, gpu)


def build(trees: Sequence[Path], folder: Path, arch: Arch | str, *, cuda_root: Path | None, on_wait: OnWait) -> Built:
    """Put the program for GPUs of ``arch`` and a script that runs it into ``folder``."""
    try:
        wanted = arch if isinstance(arch, Arch) else Arch.parse(arch)
    except ValueError as error:
        raise UsageError(str(error), help="name the GPU's own, for example sm_90 or sm_121") from None
    catalog = load()
    identified = list({tree.root: tree for tree in (identify(path, catalog) for path in trees)}.values())
    toolchain = find_toolchain(cuda_root)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fp4patch-bench-trees-") as scratch:
        groups = [_encoders(catalog)]
        for number, tree in enumerate(identified):
            known = {group.label for group in groups}
            found = _groups_of(tree, catalog, Path(scratch) / str(number), on_wait)
            # Two trees of one release are one tree before their patches.
            groups += [group for group in found if group.label not in known]
        program = (folder / PROGRAM).resolve()
        notes = proof.build(groups, toolchain=toolchain, arch=wanted, program=program, fp4patch=__version__)
    runner = folder / RUNNER
    runner.write_text(_RUNNER, encoding="utf-8")
    runner.chmod(0o755)
    return Built(folder, wanted, notes)


def _encoders(catalog: Catalog) -> proof.Group:
    """All of ours, and NVIDIA's."""
    headers = catalog.root.glob("encoders/*.cuh")
    nearest = [path for path in headers if "e2m1_x16(" in path.read_text(encoding="utf-8")]  # those of floats alone
    paths = sorted(nearest, key=lambda path: path.stem != proof.REFERENCE)
    ours = [
        numerics.Subject(path.stem, subject.lanes, subject.expression)
        for path in paths
        for subject in numerics.encoder_subjects(path)
        if subject.lanes == proof.LANES
    ]
    preamble = "\n".join([*(path.read_text(encoding="utf-8") for path in paths), proof.NVIDIA_PREAMBLE])
    return proof.Group("the encoders", preamble, (*ours, proof.NVIDIA_SUBJECT))


def _groups_of(tree: Identified, catalog: Catalog, scratch: Path, on_wait: OnWait) -> Iterator[proof.Group]:
    """Yield the tree as upstream released it and, if it is patched, as it is."""
    with reading([tree], on_wait) as (locked,):
        receipt = locked.receipt
        overlay = {path: locked.pristine(path) for path in locked.on_record}
    pristine = SourceView(tree.root, overlay)
    label = f"{tree.target.name} {tree.version or tree.root.name}"
    scratch.mkdir(parents=True)
    yield from _measured(tree, catalog, label, Side(pristine, tree.target, scratch).folder(), pristine)
    if receipt and receipt.files:
        patched = SourceView(tree.root)
        yield from _measured(tree, catalog, f"{label}, {receipt.variant}", tree.root, patched)


def _measured(tree: Identified, catalog: Catalog, label: str, root: Path, view: SourceView) -> Iterator[proof.Group]:
    patches = [patch for patch in catalog.patches.values() if patch.target == tree.target.name]
    for header in callables(patches, lambda needs: has(view, needs)):
        chosen = [one for one in header.functions if one.bench]
        if not chosen:
            continue
        names = [label if len(chosen) == 1 else f"{label}: {one.name}" for one in chosen]
        named = zip(names, subjects(chosen), strict=True)
        yield proof.Group(
            label,
            header.preamble,
            tuple(numerics.Subject(name, one.lanes, one.expression) for name, one in named),
            (*include_folders(root, tree), *header.include),
            (*tree.target.compile, FORCE_SOFTWARE),
        )


def read(file: Path) -> BenchReport:
    """Return the measurements of a program that ran on another machine."""
    try:
        return proof.read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}", help=f"name the {RESULT} that {RUNNER} wrote") from error
