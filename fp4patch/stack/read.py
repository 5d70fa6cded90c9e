"""A stack: a directory of patch files in order. ``stack.toml`` says what the files do not.

The order is that of ``series``, as quilt has it; else the sorted names, each behind those that its ``after`` names. A
directory with a ``patch.toml`` is a patch, too. Every other file of the directory is no part of the stack.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from fp4patch.catalog import outside
from fp4patch.catalog.outside import OutsidePatch, is_link
from fp4patch.catalog.reading import Reader
from fp4patch.core.errors import ManifestError, UsageError
from fp4patch.core.lex_error import LexError
from fp4patch.core.table import Manifest, Sha256, SomeText, must
from fp4patch.core.tree_path import is_inside
from fp4patch.edits.patch_file import LARGEST, Commit, read

SUFFIXES = (".patch", ".diff", ".mbox", ".eml")
"""Of the files that are patches where no ``series`` names them."""
TABLE, SERIES = "stack.toml", "series"


@dataclass(frozen=True, kw_only=True)
class Notes(Manifest):
    """What ``stack.toml`` says of a patch file, in the table of its name."""

    sha256: Sha256 | Literal[""] = ""
    """SHA-256 of the file: another file is refused."""
    after: tuple[SomeText, ...] = ()
    """Patch files that come before it. Those that it changes the lines of are found without."""
    base: str = ""
    """Release, or commit, that it was made for: what a three-way merge begins with."""
    link: Annotated[str, must(lambda text: not text or is_link(text), "an address")] = ""
    reason: str = ""
    """Why it is carried."""
    drop_when: str = ""
    """Condition under which it can go."""
    tests: tuple[SomeText, ...] = ()
    """Tests of the project that prove it."""


@dataclass(frozen=True, kw_only=True)
class Table(Manifest):
    """The contents of ``stack.toml``."""

    target: str = ""
    """Kind of tree that the patches are for. Empty: that of the tree to which they are applied."""
    base: str = ""
    """Release, or commit, that patches without a base of their own were made for."""
    patches: dict[str, Notes] = field(default_factory=dict)
    """By the name of the file."""


@dataclass(frozen=True)
class StackPatch:
    """One patch of a stack: a commit of one of its files."""

    name: str
    file: str
    """Its file, in the directory of the stack."""
    sha256: str
    """SHA-256 of the file."""
    commit: Commit
    notes: Notes

    @property
    def link(self) -> str:
        """The address that it is from; empty if nobody says it."""
        return self.notes.link or (self.commit.link if is_link(self.commit.link) else "")


@dataclass(frozen=True)
class Stack:
    """Patches in the order in which they apply. Each builds on those before it."""

    name: str
    folder: Path
    target: str
    """Kind of tree that they are for; empty if the stack does not say it."""
    patches: tuple[StackPatch, ...]

    @property
    def sha256(self) -> str:
        """One hash of the names, the files and the order of its patches."""
        return sha256("".join(f"{p.name} {p.sha256}\n" for p in self.patches).encode()).hexdigest()

    @property
    def outside(self) -> tuple[OutsidePatch, ...]:
        """The patches as they are applied: each one's own diff, in exact context."""
        return tuple(
            replace(
                outside.of_commit(
                    replace(patch.commit, link=patch.link),
                    patch.name,
                    self.target,
                    reason=patch.notes.reason,
                    retire=patch.notes.drop_when,
                    origin=outside.Origin(self.name, self.sha256, patch.sha256),
                ),
                base=patch.notes.base,
            )
            for patch in self.patches
        )


def named(folders: Sequence[Path], targets: Collection[str]) -> tuple[OutsidePatch, ...]:
    """Return the patches of directories that a command names: each is a stack, or one patch with its ``patch.toml``.

    ManifestError carries every problem.
    """
    found: list[OutsidePatch] = []
    for folder in folders:
        if (folder / "patch.toml").is_file():
            found.append(outside.read(folder, targets))
        else:
            found += read_stack(folder, targets).outside
    return tuple(found)


def contents(folders: Sequence[Path]) -> dict[str, bytes]:
    """Return the files that directories of patches consist of, by their paths below one for all, as they were read."""
    found = dict[str, bytes]()
    for folder in folders:
        root = folder.resolve()
        names = {TABLE, SERIES, "patch.toml"}
        if (root / "patch.toml").is_file():
            kept = [*root.iterdir()]
        else:
            own = {*_by_name(root), *(_series(Reader(root)) if (root / SERIES).is_file() else ())}
            kept = [root / name for name in sorted(names | own)]
        for path in kept:
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.is_file():
                    found[f"{root.name}/{file.relative_to(root).as_posix()}"] = _content(file)
    return found


def read_stack(folder: Path, targets: Collection[str]) -> Stack:
    """Return the stack of a directory. ManifestError carries every problem of all of its files."""
    folder = folder.resolve()
    reader, path = Reader(folder), folder / TABLE
    for name in (TABLE, SERIES):
        if not (folder / name).resolve().is_relative_to(folder):
            raise UsageError(f"{folder / name} is a link out of the stack", help="put the file itself there")
    table = (reader.read(Table, path) if path.is_file() else None) or Table()
    if table.target and table.target not in targets:
        reader.wrong(path, ("target",), f"one of {', '.join(targets)}", table.target)
    strips = _series(reader) if (folder / SERIES).is_file() else dict.fromkeys(_by_name(folder))
    for file in table.patches.keys() - strips.keys():
        reader.wrong(path, ("patches", file), "a patch file of this stack", "none")
    order = _in_order(reader, list(strips), table.patches)
    patches = [patch for file in order for patch in _patches(reader, file, strips[file], table, targets)]
    for number, patch in enumerate(patches):
        if patch.name in [other.name for other in patches[:number]]:
            reader.wrong(folder / patch.file, (), "a name that no other patch of the stack has", patch.name)
    if not (patches or reader.problems):
        reader.wrong(folder, (), f"a patch file ({', '.join(SUFFIXES)}), or `{SERIES}`", "none")
    if reader.problems:
        raise ManifestError(
            f"{folder} is not a stack that can be applied",
            problems=reader.problems,
            help="mend what is named; `fp4patch new-patch --stack` adds a patch without its tests and documents",
        )
    return Stack(outside.as_name(folder.name), folder, table.target, tuple(patches))


def _by_name(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        raise UsageError(f"{folder} is no directory", help="name the directory of a stack, or of a patch")
    for path in sorted(folder.iterdir()):
        if path.suffix in SUFFIXES or (path / "patch.toml").is_file():  # a link to nowhere is a patch that is missing
            yield path.name


def _series(reader: Reader) -> dict[str, int | None]:
    """Return the files of ``series`` in their order, with the directories to take off their names (``-p0``)."""
    path, found = reader.root / SERIES, dict[str, int | None]()
    for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines()):
        file, *options = line.partition("#")[0].split() or [""]
        if not file:
            continue
        strip: int | None = None
        for option in options:
            level = option.removeprefix("-p")
            if option == "-pab" or (option != level and level.isdecimal() and len(level) < 3):
                strip = 1 if level == "ab" else int(level)
            else:
                reader.wrong(path, (number,), "-p0, -p1 or -pab behind the name of a patch", option)
        if not is_inside(file) or file in found:
            reader.wrong(path, (number,), "each file of the stack once", file)
        else:
            found[file] = strip
    return found


def _in_order(reader: Reader, files: Sequence[str], notes: Mapping[str, Notes]) -> list[str]:
    """Return the files, each behind those that it comes after. A ``series`` must have that order already."""
    order, waiting = list[str](), list(files)
    while waiting:
        ready = next((f for f in waiting if not set(notes.get(f, Notes()).after) - {*order}), None)
        if ready is None or (ready != waiting[0] and (reader.root / SERIES).is_file()):
            lacking = sorted(set(notes[waiting[0]].after) - {*order})
            where = f"patches before {waiting[0]}, in `{SERIES}` too, and no circle"
            reader.wrong(reader.root / TABLE, ("patches", waiting[0], "after"), where, ", ".join(lacking))
            return list(files)
        order.append(ready)
        waiting.remove(ready)
    return order


def _patches(
    reader: Reader, file: str, strip: int | None, table: Table, targets: Collection[str]
) -> Iterator[StackPatch]:
    """Yield the patches of a file: one for each commit."""
    path = reader.root / file
    notes = table.patches.get(file, Notes())
    notes = replace(notes, base=notes.base or table.base)
    if not path.resolve().is_relative_to(reader.root) or not (path.is_file() or path.is_dir()):
        reader.wrong(path, (), "a file of this directory", "none, or a link out of it")
        return
    if path.is_dir():
        try:
            patch = outside.read(path, targets)
        except ManifestError as error:
            reader.problems += error.problems
            return
        content = patch.diff
        commits: tuple[Commit, ...] = (patch.commit,)
    else:
        content = _content(path)
        try:
            commits = read(content, strip).commits
        except LexError as error:
            reader.wrong(path, (), "a patch file", str(error))
            return
    digest = sha256(content).hexdigest()
    if notes.sha256 not in ("", digest):
        key = ("patches", file, "sha256")
        reader.wrong(
            reader.root / TABLE, key, f"that of the file, {digest}", notes.sha256, "the file was changed since"
        )
    for commit in commits:
        for reason in commit.refused:
            reader.wrong(path, (), "changes of texts inside the tree", reason, "take this file out of the patch")
    stem = outside.as_name(path.name if path.is_dir() else path.stem)
    names = [stem] if len(commits) == 1 else [f"{stem}-{number}" for number in range(1, len(commits) + 1)]
    yield from (StackPatch(name, file, digest, c, notes) for name, c in zip(names, commits, strict=True))


def _content(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(LARGEST + 1)
