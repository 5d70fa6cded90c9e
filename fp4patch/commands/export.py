"""``fp4patch export``: each patch of a variant as a change of its own, in upstream's names."""

import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.header import Header
from email.utils import formatdate
from pathlib import Path

import click

from fp4patch.catalog.identify import Identified, identify
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.patch import Patch
from fp4patch.commands.options import FOLDER, PLACE, json_option, patch_names, variant_option
from fp4patch.commands.recipes import LINES, Exported
from fp4patch.console import emit, write
from fp4patch.core.document import Report
from fp4patch.core.errors import Fp4PatchError, Refused, UsageError
from fp4patch.core.wording import suggested
from fp4patch.tree.files import unified
from fp4patch.tree.fold import fold_tree
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.locking import locked
from fp4patch.tree.stamp import in_upstreams_names

WIDTH = 72


@dataclass(frozen=True)
class Series(Report):
    """A variant's patches for one release, as files."""

    target: str
    version: str
    variant: str
    patches: tuple[str, ...]
    """Ids of the patches with a change, in their order."""
    unchanged: tuple[str, ...]
    """Ids of patches that have nothing to do in this release."""
    files: dict[str, str]
    """Text of each file by its path."""
    lines: str = ""
    """The lines of the package manager that ``--for`` names."""


@click.command(epilog="Example: fp4patch export --variant native -o patches vllm")
@click.argument("tree", metavar="TREE", type=PLACE)
@variant_option(required=True)
@click.option(
    "--patch",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=patch_names,
    help="Export only this patch. Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["git-am", "quilt", "diff"]),
    default="git-am",
    metavar="FORMAT",
    help="git-am: mails (default); quilt: a series of files; diff: the differences alone.",
)
@click.option(
    "--for",
    "manager",
    type=click.Choice(sorted(LINES)),
    metavar="NAME",
    help=f"Print the lines for a package manager, and name the files by the release: {', '.join(sorted(LINES))}.",
)
@click.option(
    "--output", "-o", type=FOLDER, metavar="DIR", help="Write the files to this directory. Default: print them."
)
@json_option("fp4patch.commands.export:Series")
def export(
    tree: Path,
    variant: str,
    names: tuple[str, ...],
    form: str,
    manager: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Export the patches of a variant as changes for upstream.

    Each patch becomes one change against the pristine TREE, in upstream's names, with the paths of its repository. The
    TREE is not changed. The same input gives the same bytes: mails have the author of GIT_AUTHOR_NAME and
    GIT_AUTHOR_EMAIL, and a date in 1970.
    """
    if output and output.is_dir() and any(output.iterdir()):
        raise Fp4PatchError(f"{output} is not empty", help="name another directory with --output")
    if manager and not (output or as_json):
        raise UsageError("the lines name files", help="name a directory for these with --output")
    made = series(tree, variant, names, "quilt" if manager == "debian" else form, manager=manager)
    if output:
        for name, text in made.files.items():
            write(output / name, text.encode("utf-8", "surrogateescape"))
    if as_json:
        emit(made)
    elif output:
        click.echo(f"{variant} for {made.target} {made.version}: {len(made.patches)} patches, written to {output}")
        for patch in made.unchanged:
            click.echo(f"  {patch}: nothing to do in this release")
        click.echo(f"\n{made.lines}" * bool(made.lines), nl=False)
    else:
        click.echo("".join(made.files.values()).encode("utf-8", "surrogateescape"), nl=False)


def series(
    tree: Path,
    variant: str,
    names: Sequence[str],
    form: str,
    version: str | None = None,
    *,
    manager: str | None = None,
) -> Series:
    """Return the patches of a variant for a tree, or those of them that are named, as changes one after another.

    The tree may be patched: the changes are made from its pristine bytes, and nothing is written. ``manager``: a name
    of ``recipes.LINES``; files then have names that begin with the release. UsageError: the variant has no such patch,
    or the tree no version. Refused: a patch does not fit the tree.
    """
    catalog = load()
    known = identify(tree, catalog, version)
    if manager and known.version is None:
        raise UsageError(f"{tree} states no version, which names the files", help="export without --for")
    release = f"{known.target.name}-{known.version}-" if manager else ""
    patches = _chosen(catalog, variant, known, names)
    with locked([known]) as (held,):
        diffs = list(_diffs(held, catalog, variant, patches))
    changes = [(patch, diff) for patch, diff in zip(patches, diffs, strict=True) if diff]
    files = {}
    for number, (patch, diff) in enumerate(changes, 1):
        place = f"{number}/{len(changes)}"
        texts = {"git-am": _mail(patch, variant, place, diff), "quilt": _dep3(patch, variant) + diff, "diff": diff}
        files[f"{release}{number:04}-{patch.name}.{'diff' if form == 'diff' else 'patch'}"] = texts[form]
    if form == "quilt":
        files["series"] = "".join(f"{name} -p1\n" for name in files)
    ids = tuple(patch.id for patch, _ in changes)
    unchanged = tuple(patch.id for patch in patches if patch.id not in ids)
    target, stated = known.target.name, str(known.version or "")
    lines = LINES[manager](Exported(target, stated, files)) if manager and ids else ""
    return Series(target, stated, variant, ids, unchanged, files, lines)


def _chosen(catalog: Catalog, variant: str, tree: Identified, names: Sequence[str]) -> list[Patch]:
    patches = {patch.name: patch for patch in catalog.patches_of(catalog.variant(variant), tree.target.name)}
    for name in names:
        if name not in patches:
            own = f"its patches are {', '.join(patches) or 'none'}"
            raise UsageError(
                f"{name} is not a patch of {variant} for {tree.target.title}", help=suggested(name, patches, own)
            )
    return [patch for name, patch in patches.items() if not names or name in names]


def _diffs(tree: LockedTree, catalog: Catalog, variant: str, patches: Sequence[Patch]) -> Iterator[str]:
    """Yield what each patch changes in the tree that has those before it; empty if it has nothing to do."""
    before: dict[str, bytes] = {}
    for number in range(1, len(patches) + 1):
        after = _desired(tree, catalog, variant, patches[:number])
        changed = {path: (before.get(path, tree.pristine(path) or b""), text) for path, text in sorted(after.items())}
        theirs = tree.known.target.layout_at(tree.root).in_repository
        differing = {theirs(path): texts for path, texts in changed.items() if texts[0] != texts[1]}
        yield "".join(f"diff --git a/{path} b/{path}\n{unified(path, *texts)}" for path, texts in differing.items())
        before |= after


def _desired(tree: LockedTree, catalog: Catalog, variant: str, patches: Sequence[Patch]) -> dict[str, bytes]:
    """Return the files that these patches change, with upstream's names in the place of ours."""
    target = tree.known.target.name
    options = catalog.variant(variant).options_of(target)
    folds = fold_tree(tree, "", patches, options)
    if folds.problems:
        raise Refused(
            f"{patches[-1].id} does not fit {tree.root}",
            problems=list(folds.problems),
            help="`fp4patch apply --check` shows the same; a release that the patch was tried on has no such problem",
        )
    return {p: in_upstreams_names(done.desired or b"", target) for p, done in folds.files.items() if done.patches}


def _mail(patch: Patch, variant: str, place: str, diff: str) -> str:
    """Return a mail as ``git format-patch`` writes it. ``place``: ``1/3``."""
    name = os.environ.get("GIT_AUTHOR_NAME", "fp4patch")
    author = f"{name} <{os.environ.get('GIT_AUTHOR_EMAIL', 'fp4patch@localhost')}>"
    subject = f"[PATCH {place}] {patch.title}"
    return (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n"
        f"From: {' '.join(author.split())}\n"
        f"Date: {formatdate(0)}\n"
        f"Subject: {Header(subject, 'us-ascii' if subject.isascii() else 'utf-8', maxlinelen=WIDTH).encode()}\n"
        "MIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=UTF-8\n"
        "Content-Transfer-Encoding: 8bit\n"
        f"\n{_message(patch, variant)}---\n\n{diff}-- \nfp4patch\n\n"
    )


def _dep3(patch: Patch, variant: str) -> str:
    """Return the header fields of Debian's DEP-3, which quilt leaves alone."""
    lines = "".join(f" {line}\n" if line else " .\n" for line in _message(patch, variant).splitlines())
    return f"Description: {patch.title}\n{lines}Origin: {patch.link}\n\n"


def _message(patch: Patch, variant: str) -> str:
    """Return the reason, the link and the command of the proof, set in lines of at most 72 characters."""
    reason = textwrap.fill(" ".join(patch.reason.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
    again = "To compile, compare and execute it again (all patches of the series):"
    return f"{reason}\n\n{patch.link}\n\n{again}\n  fp4patch verify --variant {variant} TREE\n"
