"""``fp4patch export``: each patch of a variant as a change of its own, in upstream's names and formatting."""

import difflib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.patch import Patch
from fp4patch.commands import measured
from fp4patch.commands.export.result import Change, Exported
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.extra import install
from fp4patch.core.tree_path import CXX
from fp4patch.tree.fold import fold_tree, plan_patches
from fp4patch.tree.locked import LockedTree, OnWait, reading
from fp4patch.tree.stamp import unstamped


def export(
    tree: Path, variant: str, names: Sequence[str], evidence: Path | None, said_version: str | None, on_wait: OnWait
) -> Exported:
    """Return the patches of a variant for a tree, or those of them that are named, as changes one after another.

    The tree may be patched: the changes are made from its pristine bytes, and nothing is written. UsageError: the
    variant has no such patch, or the evidence is of another tree. Refused: a patch does not fit the tree.
    """
    catalog = load()
    known = identify(tree, catalog, said_version)
    patches = _chosen(catalog, variant, known, names)
    measured = _evidence(evidence, known, variant) if evidence else ()
    style = known.root / ".clang-format"
    with reading([known], on_wait) as (locked,):
        before: dict[str, bytes] = {}
        changes, unchanged = [], []
        for number, patch in enumerate(patches, start=1):
            after = _desired(locked, catalog, variant, patches[:number])
            if style.is_file():
                after = {
                    path: _formatted(path, locked.pristine(path) or b"", text, style) for path, text in after.items()
                }
            files = {
                path: (old, text)
                for path, text in after.items()
                if (old := before.get(path, locked.pristine(path) or b"")) != text
            }
            if files:
                changes.append(Change(patch, files))
            else:
                unchanged.append(patch.id)
            before |= after
    version = str(known.version or "")
    return Exported(
        known.root,
        known.target.name,
        version,
        variant,
        tuple(changes),
        tuple(unchanged),
        evidence=measured,
    )


def _chosen(catalog: Catalog, variant: str, tree: Identified, names: Sequence[str]) -> list[Patch]:
    patches = catalog.patches_of(catalog.variant(variant), tree.target.name)
    by_name = {patch.name: patch for patch in patches} | {patch.id: patch for patch in patches}
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"{name} is not a patch of {variant} for {tree.target.title}",
                help=f"its patches are {', '.join(patch.name for patch in patches) or 'none'}",
            )
    wanted = {by_name[name].id for name in names}
    return [patch for patch in patches if not names or patch.id in wanted]


def _desired(tree: LockedTree, catalog: Catalog, variant: str, patches: Sequence[Patch]) -> dict[str, bytes]:
    """Return the files that these patches change, with upstream's names in the place of ours."""
    target = tree.known.target.name
    options = catalog.variant(variant).targets[target].options
    folds = fold_tree(tree, plan_patches(tree, variant, patches, options))
    if folds.problems:
        raise Refused(
            f"{patches[-1].id} does not fit {tree.root}",
            problems=list(folds.problems),
            help="`fp4patch apply --check` shows the same; a release that the patch was tried on has no such problem",
        )
    return {
        path: _renamed(unstamped(done.desired), target)
        for path, done in folds.files.items()
        if done.patches and done.desired is not None
    }


def _renamed(text: bytes, target: str) -> bytes:
    """Return the text with the target's name in place of ours in namespaces, macros and variables."""
    return text.replace(b"fp4patch_", f"{target}_".encode()).replace(b"FP4PATCH_", f"{target.upper()}_".encode())


def _formatted(path: str, pristine: bytes, text: bytes, style: Path) -> bytes:
    """Return the text with its changed lines as clang-format sets them by the tree's own style."""
    if PurePosixPath(path).suffix not in CXX:
        return text
    beside = Path(sys.executable).with_name("clang-format")
    program = str(beside) if beside.exists() else shutil.which("clang-format")
    if program is None:
        raise Refused(
            f"{style} defines the format of upstream's code, and there is no clang-format here",
            help=install("export"),
        )
    matcher = difflib.SequenceMatcher(None, pristine.splitlines(), text.splitlines(), autojunk=False)
    lines = [
        f"--lines={new + 1}:{end}" for tag, _, _, new, end in matcher.get_opcodes() if tag != "equal" and end > new
    ]
    command = [program, f"--style=file:{style}", f"--assume-filename={path}", "--sort-includes=false", *lines]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        raise Refused(
            f"clang-format cannot format {path}: {done.stderr.decode(errors='replace').strip()}",
            help=f"its release may be older than {style}: pip install --upgrade clang-format",
        )
    return done.stdout


def _evidence(file: Path, tree: Identified, variant: str) -> tuple[str, ...]:
    """Return what a report of ``fp4patch verify --json`` measured of the tree: code that changed, inputs that ran."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        report = next(one for one in document.get("trees", [document]) if one["target"] == tree.target.name)
        found = (report["variant"], report["version"], report["verdict"])
        lines = measured.lines(report)
    except (OSError, ValueError, LookupError, AttributeError, TypeError, StopIteration) as error:
        raise UsageError(
            f"{file} is not a report of `fp4patch verify --json` on {tree.target.title}",
            help=f"fp4patch verify --variant {variant} --json {file} TREE",
        ) from error
    if found != (variant, str(tree.version or ""), "pass"):
        raise UsageError(
            f"{file} does not prove this: it reports {found[2]} for {found[0]} on {found[1]}",
            help=f"the series is {variant} on {tree.version}",
        )
    return lines
