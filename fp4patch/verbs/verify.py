"""``fp4patch verify``: does the machine code of the patched tree satisfy the variant's rules?

The tree must be in the variant's state, byte for byte; then its probes are compiled from it and from its pristine
bytes, and judged. A probe that has nothing to show on this release, or that takes headers that are not at hand, is set
aside, and the report says so.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from fp4patch import __version__
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.errors import Refused, UsageError
from fp4patch.model import Arch, Needs, Patch, Probe, Rewritten, SetAside, State, Variant, VerifyReport
from fp4patch.patching.cxx import LexError, lex, words
from fp4patch.patching.transaction import Transaction
from fp4patch.patching.tree import decode
from fp4patch.proof.numerics import find_gpu
from fp4patch.proof.probe import SourceView
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.proof.verify import Progress
from fp4patch.proof.verify import verify as compile_and_judge
from fp4patch.sources.index import cache_dir
from fp4patch.verbs.apply import OnWait
from fp4patch.verbs.execute import run as run_machine_code
from fp4patch.verbs.folding import FoldedFile, FoldedTree, file_state, fold_tree, plan_for
from fp4patch.verbs.numerics import Numbers
from fp4patch.verbs.numerics import run as run_numerics

OnProgress = Callable[[Progress], None]

_OF_TORCH = "c10/util/Half.h"
"""A header that every release of PyTorch has had in its include folder."""


def verify(
    trees: Sequence[Path],
    variant: str,
    *,
    archs: str | None,
    cuda_root: Path | None,
    torch_include: Path | None,
    jobs: int | None,
    on_wait: OnWait,
    on_progress: OnProgress,
    numerics: Literal["no", "yes", "all"] = "no",
    execute: bool | None = False,
    every_probe: bool = False,
) -> tuple[VerifyReport, ...]:
    """A report for each tree. Refused if a tree is not in the variant's state; ToolchainError without a compiler.

    ``torch_include`` is PyTorch's include folder; None: that of an installed PyTorch, if there is one. ``numerics``:
    whether all 2^32 inputs go through the conversions as well; ``all`` with those that take the host minutes.
    ``execute``: whether they go through the machine code of the probes, on the host; None: where there is no GPU.
    ``every_probe``: those too that take the compiler minutes.
    """
    catalog = load()
    chosen = catalog.variant(variant)
    wanted = _archs(archs, chosen)
    identified = identify_all(trees, catalog)
    toolchain = find_toolchain(cuda_root)
    headers = {"torch": found} if (found := torch_headers(torch_include)) else {}
    return tuple(
        _verify_tree(
            tree,
            chosen,
            catalog,
            wanted,
            toolchain,
            headers,
            jobs,
            on_wait,
            on_progress,
            numerics,
            execute,
            every_probe,
        )
        for tree in identified
    )


def torch_headers(said: Path | None) -> tuple[Path, ...]:
    """PyTorch's include folders below ``said``, or of an installed PyTorch, which is looked for and not imported."""
    folder = said.resolve() if said else _installed_torch()
    if folder is None:
        return ()
    if not (folder / _OF_TORCH).is_file():
        raise UsageError(
            f"{folder} does not hold PyTorch's headers",
            help="name the folder that holds c10 and torch, for example site-packages/torch/include",
        )
    return (folder, folder / "torch/csrc/api/include")


def _installed_torch() -> Path | None:
    spec = importlib.util.find_spec("torch")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place) / "include").joinpath(_OF_TORCH).is_file():
            return folder
    return None


def _archs(said: str | None, variant: Variant) -> tuple[Arch, ...]:
    try:
        return tuple(
            dict.fromkeys(Arch.parse(name) for name in (said.replace(";", ",").split(",") if said else variant.arch))
        )
    except ValueError as error:
        raise UsageError(str(error), help=f"variant {variant.name} is for {','.join(variant.arch)}") from None


def _verify_tree(
    tree: Identified,
    variant: Variant,
    catalog: Catalog,
    archs: Sequence[Arch],
    toolchain: Toolchain,
    headers: Mapping[str, Sequence[Path]],
    jobs: int | None,
    on_wait: OnWait,
    on_progress: OnProgress,
    numerics: Literal["no", "yes", "all"],
    execute: bool | None,
    every_probe: bool,
) -> VerifyReport:
    began = time.monotonic()
    before, applied = _views(tree, variant, catalog, on_wait)
    probes = _probes(variant, tree.target.name, catalog)
    aside = {
        probe.id: SetAside(probe.id, probe.title, because)
        for probe, _ in probes
        if (because := nothing_to_show(probe, before, headers, every_probe=every_probe))
    }
    found = compile_and_judge(
        before=before,
        after=SourceView(tree.root),
        target=tree.target,
        probes=[(probe, source) for probe, source in probes if probe.id not in aside],
        rules=[rule for rule in variant.rules if any(_speaks_of(pattern, tree.target.name) for pattern in rule.probes)],
        archs=archs,
        toolchain=toolchain,
        headers=headers,
        aside=[probe for probe, _ in probes if probe.id in aside],
        jobs=jobs,
        cache=cache_dir() / "compilations",
        progress=on_progress,
    )
    executed = None
    if execute or (execute is None and find_gpu() is None):
        executed = run_machine_code(
            found,
            [probe for probe, _ in probes],
            variant,
            toolchain,
            threads=jobs,
            on_progress=on_progress,
        )
    numbers = Numbers((), (), ())
    if numerics != "no":
        numbers = run_numerics(
            tree,
            variant,
            catalog,
            toolchain,
            has=lambda needs: has(before, needs),
            slow_too=numerics == "all",
            threads=jobs,
            on_progress=on_progress,
            gpu=find_gpu(),
        )
    return VerifyReport(
        variant=variant.name,
        target=tree.target.name,
        version=str(tree.version or ""),
        tree=str(tree.root),
        patches=applied,
        arch=tuple(archs),
        toolchain=toolchain.info,
        results=found.results,
        problems=found.problems + numbers.problems,
        seconds=time.monotonic() - began,
        fp4patch=__version__,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        set_aside=tuple(aside.values()),
        numerics=numbers.reports,
        numerics_notes=numbers.notes,
        executed=executed,
    )


def _probes(variant: Variant, target: str, catalog: Catalog) -> list[tuple[Probe, Path]]:
    """The probes of the variant's patches, and of those that it watches without applying them."""
    watched = tuple(catalog.patches[f"{target}/{name}"] for name in variant.targets[target].watches)
    patches = catalog.patches_of(variant, target) + watched
    return [(probe, Path(patch.directory) / probe.source) for patch in patches for probe in patch.probes]


def nothing_to_show(probe: Probe, tree: SourceView, headers: Mapping[str, object], *, every_probe: bool = False) -> str:
    """Why a probe does not run on this tree, ``headers`` being those of others that are at hand; empty if it does."""
    if probe.needs and not has(tree, probe.needs):
        what = f"`{probe.needs.tokens}` in " if probe.needs.tokens else ""
        return f"this release has no {what}{' or '.join(probe.needs.search)}"
    missing = [name for name in probe.uses if name not in headers]
    if missing:
        return f"it takes the real headers of {', '.join(missing)}: name them with --torch-include"
    if probe.slow and not every_probe:
        return "it takes the compiler minutes: --all runs it"
    return ""


def has(tree: SourceView, needs: Needs) -> bool:
    """Whether the tokens stand in one of the files. One that cannot be read as C++ has them: the compiler shall say."""
    tokens = words(needs.tokens)
    for path in (path for pattern in needs.search for path in tree.root.glob(pattern) if path.is_file()):
        name = path.relative_to(tree.root).as_posix()
        content = tree.overlay[name] if name in tree.overlay else path.read_bytes()
        try:
            if content is not None and (not tokens or lex(decode(content, name)).find(tokens)):
                return True
        except (LexError, Refused):
            return True
    return False


def _views(tree: Identified, variant: Variant, catalog: Catalog, on_wait: OnWait) -> tuple[SourceView, tuple[str, ...]]:
    """The tree with its pristine bytes, and the patches that changed it. Refused if not in the variant's state."""
    with Transaction([tree.root], on_wait) as tx:
        folds = fold_tree(tx, plan_for(tx, variant, tree, catalog))
        if folds.problems:
            raise Refused(f"{variant.name} does not fit {tree.root}", problems=folds.problems)
        wrong = {path: state for path, done in folds.files.items() if (state := _off(tx, tree.root, path, done))}
        if wrong:
            path, state = next(iter(wrong.items()))
            raise Refused(
                f"{tree.root} is not in the state of {variant.name}: {path} is {state}",
                help=f"run `fp4patch apply --variant {variant.name} {tree.root}` first",
            )
        overlay = {path: tx.pristine(tree.root, path) for path in folds.files}
    changed = (_applied(patch, folds) for patch in catalog.patches_of(variant, tree.target.name))
    return SourceView(tree.root, overlay), tuple(name for name in changed if name)


def _off(tx: Transaction, root: Path, path: str, done: FoldedFile) -> State | None:
    """The state of a file that is not what the variant makes of it; None if it is."""
    return None if tx.current(root, path) == done.desired else file_state(tx, root, path, done.desired)


def _applied(patch: Patch, folds: FoldedTree) -> str:
    changed = any(by.id == patch.id and isinstance(outcome, Rewritten) for _, by, outcome in folds.outcomes())
    return f"{patch.id} {patch.version}" if changed else ""


def _speaks_of(pattern: str, target: str) -> bool:
    """Whether a rule's pattern is about probes of a target: ``cutlass/float-*`` is about cutlass."""
    return fnmatchcase(target, pattern.partition("/")[0])
