"""The history of a clone: its tags, the log of a commit, and who wrote a line. Nothing of it is changed or fetched."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from fp4patch.core.errors import SourceError, UsageError
from fp4patch.sources.checkout import Checkout

_FORMAT = "--format=%x1e%H%x1f%s%x1f%b"
_HASH = re.compile(r"[0-9a-f]{4,64}")
# Example: 1b2c3d4e5f60718293a4b5c6d7e8f90123456789 12 14 3
_BLAMED = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")


@dataclass(frozen=True)
class Entry:
    """A commit of a log."""

    commit: str
    subject: str
    body: str = ""

    def __str__(self) -> str:
        """Return its short hash and its subject."""
        return f"{self.commit[:9]} {self.subject}"


class Clone:
    """A git repository, with a work tree or without one."""

    def __init__(self, folder: Path) -> None:
        """Find the repository. UsageError: there is none."""
        self.folder = folder
        bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
        found = Checkout(folder.resolve(), folder.resolve()) if bare else Checkout.around(folder.resolve() / "_")
        if not found:
            raise UsageError(f"{folder} is no git repository", help="name the directory of a clone, bare or not")
        self._git = found
        self._log = lru_cache(maxsize=64)(self._read_log)

    def commit(self, ref: str) -> str:
        """Return the hash of the commit that a tag, branch or hash names; empty if it names none."""
        if ref.startswith("-") or not ref:
            return ""
        return (self._git.say("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") or b"").decode().strip()

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file of a commit; None if it has none of that name."""
        return self._git.say("cat-file", "blob", f"{commit}:{path}")

    def blob(self, name: str) -> bytes | None:
        """Return the content that has a hash, which may be abbreviated; None if it is not here."""
        return self._git.say("cat-file", "blob", name) if _HASH.fullmatch(name) else None

    def patch(self, commit: str) -> bytes:
        """Return a commit as a mail; nothing if it is a merge."""
        return self._git.say("format-patch", "-1", "--stdout", "-M", "--full-index", "--no-binary", commit) or b""

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All tags."""
        return tuple((self._git.say("tag", "--list") or b"").decode("utf-8", "replace").split())

    def tags_with(self, commit: str) -> frozenset[str]:
        """Return the tags that have a commit in their history."""
        said = self._git.say("tag", "--list", "--contains", commit) or b""
        return frozenset(said.decode("utf-8", "replace").split())

    def log(self, commit: str) -> tuple[Entry, ...]:
        """Return the history of a commit, parents before their children. SourceError: git cannot read it."""
        return self._log(commit)

    def _read_log(self, commit: str) -> tuple[Entry, ...]:
        said = self._git.say("log", "--topo-order", "--reverse", _FORMAT, commit)
        if said is None:
            raise SourceError(f"git cannot read the log of {commit} in {self.folder}", help="is the clone whole?")
        rows = said.decode("utf-8", "replace").split("\x1e")[1:]
        return tuple(Entry(*(part.strip() for part in row.split("\x1f", 2))) for row in rows)

    def has_ancestor(self, commit: str, ancestor: str) -> bool:
        """Tell whether a commit is another one, or was made after it."""
        return self._git.say("merge-base", "--is-ancestor", ancestor, commit) is not None

    def writers(self, commit: str, path: str, lines: Iterable[int], without: str = "") -> dict[int, Entry]:
        """Return the commit that wrote each of some lines (1-based) of a file; not those that ``without`` has."""
        wanted = sorted(set(lines))
        if not wanted:
            return {}
        spans = [f"-L{line},{line}" for line in wanted]
        said = self._git.say("blame", "--porcelain", *spans, commit, *([f"^{without}"] if without else []), "--", path)
        found, older = dict[int, str](), set[str]()
        name = ""
        for row in (said or b"").decode("utf-8", "replace").splitlines():
            if match := _BLAMED.fullmatch(row):
                name = match[1]
                found[int(match[2])] = name
            elif row == "boundary":
                older.add(name)
        known = self._described([name for name in dict.fromkeys(found.values()) if not (without and name in older)])
        return {line: known[name] for line, name in found.items() if name in known}

    def _described(self, commits: Sequence[str]) -> dict[str, Entry]:
        if not commits:
            return {}
        said = self._git.say("log", "--no-walk=sorted", "--format=%x1e%H%x1f%s", *commits) or b""
        rows = said.decode("utf-8", "replace").split("\x1e")[1:]
        entries = [Entry(*(part.strip() for part in row.split("\x1f", 1))) for row in rows]
        return {entry.commit: entry for entry in entries}
