"""``fp4patch new-patch``: a pull request's diff as the directory of a patch, for ``--with``."""

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.text import Text

from fp4patch.catalog import outside
from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Archive, Target
from fp4patch.commands.options import FOLDER, NAME, json_option, target_names
from fp4patch.console import emit, printable, progress_bar, show, write
from fp4patch.core.document import Report
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.lex_error import LexError
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.results import Drift, NothingToDo, Outcome, State
from fp4patch.core.tree_path import not_built
from fp4patch.core.wording import counted
from fp4patch.edits import Diff
from fp4patch.edits.diff import File, FileDiff, changed
from fp4patch.edits.patch_file import FileChange, read
from fp4patch.edits.patch_text import patch_text
from fp4patch.sources.checkout import Checkout
from fp4patch.sources.index import place
from fp4patch.stack.files import in_archive
from fp4patch.stack.read import SERIES, TABLE, read_stack
from fp4patch.tree.locking import locked

# Example: https://github.com/vllm-project/vllm/pull/12345/files
_PULL = re.compile(r".*/(?:pull|merge_requests)/(\d+)(?:[/.].*)?")
_NUMBER = re.compile(r"\d{1,4}")
_TOML = """\
# fp4patch apply --with {name} --variant VARIANT TREE
target = {target}
title = {title}
reason = {title}
link = {link}
applies = {applies}  # found by trying it on releases
retire = "when upstream has the change"

[[edits]]
op = "diff"
file = "pr.diff"
sha256 = "{sha256}"
"""


@dataclass(frozen=True)
class NewPatch(Report):
    """A patch that was made of a diff."""

    patch: str
    """Id of the patch."""
    directory: Path
    link: str
    applies: str
    """Releases that it applies to, as a version specifier."""
    releases: dict[str, State]
    """State of the patch on each release that was tried: ``pristine``, ``upstreamed`` or ``drifted``."""
    left_out: tuple[str, ...]
    """Files of the diff that are not part of what is built, and that the directory's diff does not have."""


@dataclass(frozen=True)
class AddedToStack(Report):
    """Patches that were added to a stack."""

    stack: Path
    files: tuple[str, ...]
    """Their files, in the order in which they apply."""
    left_out: tuple[str, ...]
    """Files of the changes that are not part of what is built, and that the patches do not have."""
    nothing_built: tuple[str, ...]
    """Subjects of commits that change nothing else, and that the stack does not have."""


@click.command(epilog="Example: fp4patch new-patch vllm 40191.diff")
@click.argument("target", shell_complete=target_names)
@click.argument("diff", metavar="FILE|COMMIT|A..B", type=NAME)
@click.option(
    "--link", metavar="URL", help="Its address. Default: that in its head, or that of the pull request of its name."
)
@click.option("--release", "releases", metavar="V", multiple=True, help="Try it on this release. Repeatable.")
@click.option("--tree", "trees", metavar="DIR", multiple=True, type=FOLDER, help="Try it on this tree. Repeatable.")
@click.option("--clone", metavar="DIR", type=FOLDER, help="The clone that has the commit, or the range of commits.")
@click.option("--stack", metavar="DIR", type=FOLDER, help="Add it to this stack, which is made if it is not there.")
@json_option("fp4patch.commands.new_patch:NewPatch", "fp4patch.commands.new_patch:AddedToStack")
def new_patch(
    target: str,
    diff: str,
    link: str | None,
    releases: tuple[str, ...],
    trees: tuple[Path, ...],
    clone: Path | None,
    stack: Path | None,
    as_json: bool,
) -> None:
    """Make a patch of a diff, mail or commit: a pull request of TARGET.

    Without --stack the patch is a directory, here and with the name of the pull request. It is tried on the releases
    that are in the cache, or on those of --release and --tree. With --stack each commit is a file of the stack.
    """
    kind, name = load().target(target), Path(diff)
    content = _of_clone(clone, diff) if clone else None
    if content is None and not name.is_file():
        raise UsageError(f"there is no file {diff}", help="name the file of a diff or a mail, or a commit with --clone")
    if stack:
        added = add_to_stack(kind, content if content is not None else name.read_bytes(), name, link, stack)
        emit(added) if as_json else show(_added(added))
        return
    if content is not None:
        raise UsageError("commits of a clone go into a stack", help="name its directory with --stack")
    with progress_bar() as tick:
        made = make(kind, name, link, releases, Path(), tick, trees)
    emit(made) if as_json else show(_text(made))


def _of_clone(clone: Path, revisions: str) -> bytes:
    checkout = Checkout.at(clone.resolve())
    if checkout is None:
        raise UsageError(f"{clone} is no repository of git", help="name a clone of the project, with --clone")
    if content := checkout.patches(revisions):
        return content
    raise UsageError(
        f"{clone} has no commit {revisions} with changes of its own", help="fetch it; a merge has none: name its range"
    )


def add_to_stack(target: Target, content: bytes, name: Path, link: str | None, stack: Path) -> AddedToStack:
    """Add each commit of a patch file to a stack, pinned by its hash. UsageError, Refused: nothing was written."""
    try:
        commits = read(content).commits
    except LexError as error:
        raise Refused(f"{name}: {error}", help="take the diff as git writes it") from error
    known = read_stack(stack, load().targets) if stack.is_dir() and any(stack.iterdir()) else None
    if known and known.target not in ("", target.name):
        raise UsageError(f"{stack} is a stack for {known.target}", help="name another directory with --stack")
    numbers = [int(match[0]) for patch in (known.patches if known else ()) if (match := _NUMBER.match(patch.file))]
    number = 1 + max(numbers, default=0)
    files = dict[str, bytes]()
    left_out = list[str]()
    idle = list[str]()
    for commit in commits:
        out = [change.path for change in commit.changes if _is_left_out(change)]
        left_out += out
        kept = replace(commit, changes=tuple(change for change in commit.changes if change.path not in out))
        if kept.refused:
            raise Refused(
                f"{name}: {kept.refused[0]}", help="leave it out of the diff, or carry what it does otherwise"
            )
        if not kept.changes:
            idle.append(commit.subject)
            continue
        pull = f"{target.git.removesuffix('.git')}/pull/{commit.pull_request}" if commit.pull_request else ""
        address = link or pull or (commit.link if outside.is_link(commit.link) else "")
        title = re.sub(r"\W+", "-", commit.subject or name.stem, flags=re.ASCII).strip("-")[:52]
        files[f"{number:04}-{title or 'patch'}.patch"] = patch_text(replace(kept, link=address)).encode()
        number += 1
    if not files:
        raise Refused(f"{name} changes nothing that is built", help="it needs no patch")
    table = stack / TABLE
    before = table.read_text(encoding="utf-8") if table.is_file() else f'target = "{target.name}"\n'
    pins = "".join(f'\n[patches."{file}"]\nsha256 = "{sha256(data).hexdigest()}"\n' for file, data in files.items())
    try:
        tomllib.loads(before + pins)
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"{table} cannot get a table for a patch: {error}", help="write [patches.NAME] there") from error
    for file, data in files.items():
        write(stack / file, data, advice="work in a directory that you may write")
    if (stack / SERIES).is_file():
        series = (stack / SERIES).read_text(encoding="utf-8")
        ends = "" if series.endswith("\n") or not series else "\n"
        write(stack / SERIES, f"{series}{ends}{''.join(f'{file} -p1{chr(10)}' for file in files)}", advice="see above")
    write(table, f"{before}{pins}", advice="work in a directory that you may write")
    read_stack(stack, load().targets)
    return AddedToStack(stack, tuple(files), tuple(dict.fromkeys(left_out)), tuple(idle))


def _added(added: AddedToStack) -> Text:
    lines = [f"{added.stack}: {counted(len(added.files), 'patch', 'patches')} added"]
    lines += [f"  {file}" for file in added.files]
    lines += [f"  left out, since it is not built: {', '.join(added.left_out)}"] * bool(added.left_out)
    lines += [f"  no patch, since nothing of it is built: {subject}" for subject in added.nothing_built]
    lines += [f"  `fp4patch apply --with {added.stack} TREE` applies the stack"]
    return Text("\n".join(map(printable, lines)))


def make(
    target: Target,
    diff: Path,
    link: str | None,
    releases: Sequence[str],
    parent: Path,
    on_progress: OnProgress,
    trees: Sequence[Path] = (),
) -> NewPatch:
    """Write the directory of a patch below ``parent``.

    UsageError: no address, or no release to try it on. Refused: the diff cannot be a patch, or applies to none.
    """
    content = diff.read_bytes()
    try:
        patch_file = read(content)
        parts, commit = patch_file.changes, patch_file.commits[0]
        left_out = tuple(part.path for part in parts if _is_left_out(part))
        if len(left_out) == len(parts):
            raise Refused(f"{diff} changes nothing that is built", help="it needs no patch")
        if left_out:
            content = "".join(part.text for part in parts if part.path not in left_out).encode()
        digest = sha256(content).hexdigest()
        edits = Diff(file=diff.name, sha256=digest).of_files(content)
    except LexError as error:
        raise Refused(f"{diff}: {error}", help="take the diff of the whole pull request, as git writes it") from error
    named = re.fullmatch(r"(?:pr-?)?(\d+)\.(?:diff|patch)", diff.name)
    pulls = f"{target.git.removesuffix('.git')}/pull/{named[1]}" if named else ""
    address = link or commit.link or pulls
    if not outside.is_link(address):
        raise UsageError("which address is the diff from?", help="name it with --link, for example a pull request")
    pull = _PULL.fullmatch(urlsplit(address).path)
    name = f"pr-{pull[1]}" if pull else re.sub(r"[^\w.-]+", "-", diff.stem, flags=re.ASCII)
    states = dict(_tried(edits, _texts(target, releases, trees), on_progress))
    if State.PRISTINE not in states.values():
        found = ", ".join(f"{version} {state}" for version, state in states.items())
        raise Refused(
            f"{diff} applies to none of {counted(len(states), 'release')}: {found}", help="--release names others"
        )
    folder = parent / name
    if folder.exists():
        raise UsageError(f"{folder} exists", help="move it away, or work in another directory")
    texts = {
        "target": target.name,
        "title": printable(commit.subject) or address,
        "link": address,
        "applies": _specifier(states),
    }
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in texts.items()}
    toml = _TOML.format(name=name, sha256=digest, **quoted)
    write(folder / "patch.toml", toml, advice="work in a directory that you may write")
    write(folder / "pr.diff", content, advice="work in a directory that you may write")
    patch = outside.read(folder, [target.name])
    return NewPatch(patch.id, folder, address, patch.applies, states, left_out)


def _is_left_out(part: FileChange) -> bool:
    """Return whether a part of a diff changes nothing that is built or installed."""
    hidden = any(name.startswith(".") and name != ".." for name in part.path.split("/"))
    return hidden or not_built(part.path) is not None or part.path.endswith((".md", ".rst"))


Texts = Callable[[Collection[str]], Mapping[str, bytes]]
"""Returns the contents of some files, as far as they are there."""


def _tried(
    edits: Sequence[FileDiff], sources: Mapping[str, Texts], on_progress: OnProgress
) -> Iterator[tuple[str, State]]:
    """Yield each release with the state of the whole diff: it is drifted, too, where a part of it is upstreamed."""
    for number, (version, texts_of) in enumerate(sources.items()):
        on_progress(Step(number, len(sources), version))
        texts = texts_of({path for edit in edits for path in edit.whole.paths})
        files = {path: File(text.decode("utf-8", "surrogateescape")) for path, text in texts.items()}
        states = {_state(outcome) for outcome in changed([edit.whole for edit in edits], files.get).outcomes}
        yield version, states.pop() if len(states) == 1 else State.DRIFTED


def _texts(target: Target, releases: Sequence[str], trees: Sequence[Path]) -> dict[str, Texts]:
    """Return what reads the files of each release to try, by its version: those of archives, and of trees."""
    sources = dict(_of_tree(target, tree) for tree in trees)
    return sources if trees and not releases else _of_archives(target, releases) | sources


def _of_tree(target: Target, tree: Path) -> tuple[str, Texts]:
    known = identify(tree, load())
    if known.target.name != target.name or known.version is None:
        found = f"{known.target.title}, {known.version or 'of no version that it states'}"
        raise UsageError(f"{tree} is {found}", help=f"name a tree of {target.title} that states its version")

    layout = known.target.layout_at(known.root)

    def texts(names: Collection[str]) -> Mapping[str, bytes]:
        with locked([known]) as (held,):
            return {name: text for name in names if (text := held.read(layout.place(name))) is not None}

    return str(known.version), texts


def _of_archives(target: Target, releases: Sequence[str]) -> dict[str, Texts]:
    names = [release.removeprefix("v") for release in releases]
    archives = [a for a in target.archives if a.version in names or (not names and place(a).is_file())]
    if missing := sorted(set(names) - {archive.version for archive in archives}):
        raise UsageError(
            f"there is no archive of {target.name} {missing[0]}", help="fetch it, and name the directory with --tree"
        )
    if not archives:
        known = ", ".join(archive.version for archive in target.archives[-3:])
        raise UsageError(
            f"no release of {target.name} is in the cache", help=f"name some with --release ({known}), or --tree"
        )

    def of(archive: Archive) -> Texts:
        def texts(names: Collection[str]) -> Mapping[str, bytes]:
            release = in_archive(target, archive, names, silent)
            return {name: text for name in names if (text := release.read(name)) is not None}

        return texts

    return {archive.version: of(archive) for archive in archives}


def _state(outcome: Outcome) -> State:
    if isinstance(outcome, Drift):
        return State.DRIFTED
    return State.UPSTREAMED if isinstance(outcome, NothingToDo) else State.PRISTINE


def _specifier(states: dict[str, State]) -> str:
    """Return the specifier of the releases that the diff applies to, of those that were tried."""
    applying = [version for version, state in states.items() if state is State.PRISTINE]
    first, last = applying[0], applying[-1]
    between = list(states)[list(states).index(first) : list(states).index(last)]
    return ",".join([f">={first}", f"<={last}", *(f"!={version}" for version in between if version not in applying)])


def _text(made: NewPatch) -> Text:
    tried = counted(len(made.releases), "release")
    lines = [f"{made.directory}: {made.patch}, tried on {tried}: it applies to {made.applies}", f"  from {made.link}"]
    lines += [f"  left out, since it is not built: {', '.join(made.left_out)}"] * bool(made.left_out)
    lines += [f"  `fp4patch apply --with {made.directory} --variant VARIANT TREE` applies it"]
    return Text("\n".join(map(printable, lines)))
