"""``fp4patch new-patch``: a pull request's diff as the directory of a patch, for ``--with``."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.text import Text

from fp4patch.catalog import outside
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.commands.options import Place, json_option, target_names
from fp4patch.console import emit, printable, progress_bar, show, write
from fp4patch.core.document import Report
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.lex_error import LexError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.results import Drift, NothingToDo, Outcome, State
from fp4patch.core.tree_path import not_built
from fp4patch.core.wording import counted
from fp4patch.edits import Diff
from fp4patch.edits.diff import File, FileDiff, changed
from fp4patch.edits.patch_file import FileChange, read
from fp4patch.sources.archive import read_files
from fp4patch.sources.index import download, place

# Example: https://github.com/vllm-project/vllm/pull/12345/files
_PULL = re.compile(r".*/(?:pull|merge_requests)/(\d+)(?:[/.].*)?")
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


@click.command(epilog="Example: fp4patch new-patch vllm 40191.diff")
@click.argument("target", shell_complete=target_names)
@click.argument("diff", metavar="FILE.diff", type=Place(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--link", metavar="URL", help="Its address. Default: that in its head, or that of the pull request of its name."
)
@click.option("--release", "releases", metavar="V", multiple=True, help="Try it on this release. Repeatable.")
@json_option("fp4patch.commands.new_patch:NewPatch")
def new_patch(target: str, diff: Path, link: str | None, releases: tuple[str, ...], as_json: bool) -> None:
    """Make a patch of FILE.diff, a pull request of TARGET.

    The patch is a directory, here and with the name of the pull request. It is tried on the releases that are in the
    cache, or on those of --release.
    """
    with progress_bar() as tick:
        made = make(load().target(target), diff, link, releases, Path(), tick)
    emit(made) if as_json else show(_text(made))


def make(
    target: Target, diff: Path, link: str | None, releases: Sequence[str], parent: Path, on_progress: OnProgress
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
    states = dict(_tried(target, edits, releases, on_progress))
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


def _tried(
    target: Target, edits: Sequence[FileDiff], releases: Sequence[str], on_progress: OnProgress
) -> Iterator[tuple[str, State]]:
    """Yield each release with the state of the whole diff: it is drifted, too, where a part of it is upstreamed."""
    names = [release.removeprefix("v") for release in releases]
    archives = [a for a in target.archives if a.version in names or (not names and place(a).is_file())]
    if missing := sorted(set(names) - {archive.version for archive in archives}):
        raise UsageError(
            f"there is no archive of {target.name} {missing[0]}", help="fetch it, and use `git apply --check`"
        )
    if not archives:
        known = ", ".join(archive.version for archive in target.archives[-3:])
        raise UsageError(f"no release of {target.name} is in the cache", help=f"name some with --release: {known}")
    for number, archive in enumerate(archives):
        on_progress(Step(number, len(archives), f"{target.name} {archive.version}"))
        named = {path for edit in edits for path in edit.whole.paths}
        texts = read_files(download(archive, lambda _: None), archive.subtree, named)
        files = {path: File(text.decode("utf-8", "surrogateescape")) for path, text in texts.items()}
        outcomes = changed([edit.whole for edit in edits], files.get).outcomes
        states = {_state(outcome) for outcome in outcomes}
        yield archive.version, states.pop() if len(states) == 1 else State.DRIFTED


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
