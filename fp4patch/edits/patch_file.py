"""Reader of patch files: git diffs, mails of ``git format-patch``, and the diffs of diff(1), quilt and Debian.

A text becomes values; nothing is applied here. All of a text is read, or it is refused with the line.
"""

import base64
import binascii
import quopri
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.utils import parseaddr
from functools import cached_property
from itertools import takewhile

from fp4patch.core.lex_error import LexError
from fp4patch.core.tree_path import is_inside

LARGEST = 32 << 20
"""Bytes of the largest patch file that is read."""
_LONGEST_NAME = 4096
_LONGEST_PART = 255
"""Bytes of a name between two slashes, which no file system exceeds."""
_NULL = "/dev/null"
_EMPTY = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
"""Hashes that git has for a file without content: SHA-1 and SHA-256."""

# Example: From 1b2c3d4e5f60718293a4b5c6d7e8f90123456789 Mon Sep 17 00:00:00 2001\n
_MAIL = re.compile(r"From (\S+) +\w{3} +\w{3} +\d{1,2} \d\d:\d\d:\d\d (?:[+-]\d{4} )?\d{4}\r?\n")
# Example: @@ -12,7 +12,9 @@ int main() {\n
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*\n")
# Example: index 1b2c3d4..5e6f708 100644
_INDEX = re.compile(r"index ([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d{6}))?")
# Example: --- a/include/x.h	2026-01-02 03:04:05.000000000 +0100
_STAMP = re.compile(r"[^\t]*?(?:\t| +(?=\d{4}-\d\d-\d\d ))(.*)")
# Example: 1970-01-01 01:00:00.000000000 +0100
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})")
# Example: Binary files a/logo.png and b/logo.png differ
_BINARY = re.compile(r"(?:Binary files|Files) (.+) and (.+) differ")
_ONLY_IN = re.compile(r"Only in \S.*: \S")
# Example: [PATCH v2 3/7]
_TAGS = re.compile(r"(?:\s*(?:[Rr][Ee]:|\[[^]]*PATCH[^]]*\]))+\s*")
# Example:  3 files changed, 14 insertions(+)\n
_STATISTICS = re.compile(r" \d+ files? changed.*\n")
_FIELD = re.compile(r"([A-Za-z][\w-]*): ?(.*)")
_URL = re.compile(r"https?://[^\s<>\"')]*[\w/]")
# Example: https://github.com/vllm-project/vllm/pull/12345
_PULL = re.compile(r"https?://[^\s<>\"')]*/(?:pull|merge_requests)/(\d{1,9})\b")
_COMMIT = re.compile(r"(?:\bcommit[ :/]+|\bcommits?/)([0-9a-f]{7,64})\b")
_ESCAPE = re.compile(rb'\\(?:([0-3][0-7]{2})|([abtnvfr"\\]))')
_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


@dataclass(frozen=True)
class Hunk:
    """Lines of a file, with their ends, before a change and after it."""

    line: int
    """1-based number of the first line before the change, and of the first one after it in ``line_after``."""
    line_after: int
    rows: tuple[tuple[str, str], ...]
    """Each line with its sign: a blank for context, ``-`` for one that goes, ``+`` for one that comes."""

    @cached_property
    def before(self) -> tuple[str, ...]:
        """The lines before the change."""
        return tuple(line for sign, line in self.rows if sign != "+")

    @cached_property
    def after(self) -> tuple[str, ...]:
        """The lines after the change."""
        return tuple(line for sign, line in self.rows if sign != "-")

    @property
    def begins_file(self) -> bool:
        """True if it is at the beginning of the file: it was there, as git has it, or no context is above it."""
        return self.line <= 1 or not self.rows or self.rows[0][0] != " "

    @property
    def ends_file(self) -> bool:
        """True if no context is below the change: then it is at the end of the file."""
        return not self.rows or self.rows[-1][0] != " "

    @property
    def reverse(self) -> "Hunk":
        """The hunk that takes this one back."""
        signs = {"-": "+", "+": "-", " ": " "}
        return Hunk(self.line_after, self.line, tuple((signs[sign], line) for sign, line in self.rows))

    def is_at(self, lines: Sequence[str], place: int) -> bool:
        """Tell whether the lines before the change are at a place (0-based).

        They are not, if they are a part of the lines after it: what a hunk adds can look like what is around it.
        """
        more = len(self.after) - len(self.before)
        return self._fits(lines, place) and not any(
            lines[start] == self.after[0] and self.reverse._fits(lines, start)
            for start in range(max(0, place - more), place + 1 if more > 0 and self.before else 0)
        )

    def _fits(self, lines: Sequence[str], place: int) -> bool:
        end = place + len(self.before)
        return (
            tuple(lines[place:end]) == self.before
            and not (self.begins_file and place > 0)
            and not (self.ends_file and end < len(lines))
        )

    def sites(self, lines: Sequence[str], start: int) -> list[int]:
        """Return the places (0-based) from ``start`` on that have the lines before the change."""
        places = range(start, len(lines) - len(self.before) + 1)
        if self.before:
            return [place for place in places if lines[place] == self.before[0] and self.is_at(lines, place)]
        return [place for place in places if self.is_at(lines, place)]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """What a patch does to one file. Paths are relative to the root of the tree, with slashes."""

    before: str | None
    """Path of the file before the change; None if it is created."""
    after: str | None
    """Path after it; None if it is deleted."""
    mode_before: str = ""
    """Mode as git writes it: ``100644``, ``100755``, ``120000`` of a link, ``160000`` of a submodule; or not stated."""
    mode_after: str = ""
    blob_before: str = ""
    """Hash of the blob in the ``index`` line, perhaps abbreviated; empty if it is not stated, or there is no file."""
    blob_after: str = ""
    copied: bool = False
    """True if the file before the change stays where it is."""
    hunks: tuple[Hunk, ...] = ()
    binary: bool = False
    """True if the change is one of bytes: it has no hunks."""
    line: int
    """1-based number of its first line in the patch file."""
    text: str
    """The part of the patch file, as it is there."""

    @property
    def path(self) -> str:
        """The path after the change, or that of a file that is deleted."""
        return self.after or self.before or ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths before the change and after it, each once."""
        return tuple(dict.fromkeys(path for path in (self.before, self.after) if path))

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """The paths at which there is another file afterwards, or none: not that of which a copy is made."""
        return (self.path,) if self.copied else self.paths

    @property
    def sets_mode(self) -> bool:
        """True if the change decides whether the file can be executed: of a new file, or of one with other bits."""
        return bool(self.mode_after) and (self.before is None or self.mode_before not in ("", self.mode_after))

    @property
    def refused(self) -> str:
        """Reason why the change can go into no tree, with the path; empty if there is none."""
        for path in self.paths:
            if reason := refused_path(path):
                return f"{path!a}: {reason}"
        for mode in filter(None, (self.mode_before, self.mode_after)):
            if mode not in ("100644", "100755"):
                kind = {"12": "a symbolic link", "16": "a submodule"}.get(mode[:2], f"no source file (mode {mode})")
                return f"{self.path!a}: it is {kind}, and patches are about regular files"
        return f"{self.path!a}: the change is binary, and patches are about texts" if self.binary else ""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit of a patch file, or the whole of a file without mails. Empty: the file does not state it."""

    subject: str = ""
    author: str = ""
    """``Name <address>``."""
    description: str = ""
    link: str = ""
    """The first address in its head."""
    pull_request: int | None = None
    commit: str = ""
    """Hash of the commit that it was made of, perhaps abbreviated."""
    changes: tuple[FileChange, ...]
    line: int = 1
    """1-based number of its first line in the patch file."""

    @property
    def refused(self) -> tuple[str, ...]:
        """Reasons why it can go into no tree, one for each file."""
        return tuple(reason for change in self.changes if (reason := change.refused))


@dataclass(frozen=True)
class PatchFile:
    """A patch file: its commits in their order; one, if it has no mails. Each builds on those before it."""

    commits: tuple[Commit, ...]

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The changes of all commits, in their order."""
        return tuple(change for commit in self.commits for change in commit.changes)


def refused_path(path: str) -> str:
    """Return the reason why no patch may be about a file of this name; empty if there is none."""
    if len(path) > _LONGEST_NAME or any(len(part.encode(errors="replace")) > _LONGEST_PART for part in path.split("/")):
        return "the name is too long"
    if not path.isprintable():
        return "the name has control characters, or is not UTF-8"
    if not is_inside(path) or "\\" in path:
        return "it is not a file inside the tree"
    for part in path.split("/"):
        # What a file system that ignores case, or the last dots and blanks of a name, takes for git's own directory.
        plain = part.lower().rstrip(". ").partition(":")[0]
        if plain in (".git", "git~1", ".fp4patch"):
            return f"it is in {part}"
    return ""


def decoded(content: bytes) -> str:
    """Return a patch file as text. LexError: it is not UTF-8, too large, or ends within a line."""
    if len(content) > LARGEST:
        raise LexError(f"expected at most {LARGEST >> 20} MiB, found {len(content) >> 20} MiB", 1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LexError("expected UTF-8", content.count(b"\n", 0, error.start) + 1) from error
    if "\0" in text or not text.endswith("\n"):
        raise LexError("expected whole lines of text", text.count("\n") + 1)
    return text


def read(content: bytes, strip: int | None = None) -> PatchFile:
    """Return what a patch file says. LexError: it is none, or is damaged.

    ``strip`` is the number of directories to take off the front of names, as ``-p`` of patch(1). None: it is found for
    each file by its two names, which differ in the first directory (1), or not at all (0).
    """
    lines = re.findall(r"[^\n]*\n", decoded(content))
    head = next((at for at, line in enumerate(lines) if line.strip()), 0)
    starts = [at for at, line in enumerate(lines) if line.startswith("From ") and _MAIL.fullmatch(line)]
    if starts[:1] == [head]:
        ends = [*starts[1:], len(lines)]
        commits = [_mail(lines, start, end, strip) for start, end in zip(starts, ends, strict=True)]
    elif _is_mail(lines[head:]):
        commits = [_mail(lines, head, len(lines), strip)]
    else:
        commits = [_plain(lines, strip)]
    commits = [commit for commit in commits if commit.changes]  # a cover letter has none
    if not commits:
        raise LexError("expected a unified diff: `diff --git a/FILE b/FILE`, or `--- FILE` and `+++ FILE`", 1)
    return PatchFile(tuple(commits))


# --- what is said of a patch -----------------------------------------------------------------------------------------


def _is_mail(lines: Sequence[str]) -> bool:
    """Tell whether a text begins with the header of a mail: one saved without the line that mailboxes have."""
    head = takewhile(str.strip, lines)
    fields = [match[1].lower() for line in head if (match := _FIELD.match(line))]
    return {"from", "date", "subject"} <= set(fields)


def _mail(lines: Sequence[str], start: int, end: int, strip: int | None) -> Commit:
    """Return the commit of a mail, which has the lines from ``start`` (0-based) to before ``end``."""
    first = _MAIL.fullmatch(lines[start])
    blank = next((at for at in range(start, end) if not lines[at].strip()), end)
    head: Message = HeaderParser().parsestr("".join(lines[start + bool(first) : blank]).replace("\r\n", "\n"))
    if head.get_content_maintype() == "multipart":
        raise LexError("expected a mail of one text, found one of several parts: save the patch alone", start + 1)
    body = list(lines[blank + 1 : end])
    encoding = str(head.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding in ("quoted-printable", "base64"):
        body = _transferred("".join(body), encoding, blank + 2)
    rule = _rule(body)
    changes_at = _begins(body, rule)
    fields, message = _in_body(body[: rule or changes_at])
    author = fields.get("from", str(head.get("From", "")))
    subject = fields.get("subject", _unfolded(head.get("Subject", "")))
    hash_ = first[1] if first and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", first[1]) and first[1].strip("0") else ""
    commit = _commit(_header_text(subject), "".join(message), hash_)
    changes = _changes(body, changes_at, blank + 2, strip)
    return replace(commit, author=_address(author), changes=changes, line=start + 1)


def _transferred(body: str, encoding: str, line: int) -> list[str]:
    """Return the lines of a body that was encoded for the way. LexError: it cannot be decoded."""
    try:
        data = quopri.decodestring(body.encode()) if encoding[0] == "q" else base64.b64decode(body.encode())
        text = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise LexError(f"expected UTF-8 text in {encoding}, found other bytes", line) from error
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _in_body(message: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the fields at the top of a message, which stand for those of the mail, and the rest."""
    fields, at = dict[str, str](), next((n for n, line in enumerate(message) if line.strip()), 0)
    while at < len(message) and (match := _FIELD.match(message[at])) and match[1] in ("From", "Date", "Subject"):
        fields[match[1].lower()] = match[2].strip()
        at += 1
    return (fields, list(message[at:])) if "from" in fields else ({}, list(message))


def _rule(body: Sequence[str]) -> int:
    """Return the index of the rule between the message of a mail and its statistics; 0 if there is none.

    A message may have rules of its own, and diffs: a description of a pull request is Markdown.
    """
    rules = [at for at, line in enumerate(body) if line.rstrip() == "---"]
    for at in rules:
        if any(_STATISTICS.match(line) for line in takewhile(str.strip, body[at + 1 :])):
            return at
    return rules[0] if rules else 0


def _unfolded(field: object) -> str:
    return re.sub(r"\r?\n(?=[ \t])", "", str(field))


def _header_text(field: str) -> str:
    """Return a field of a mail as text; one that its own encoding does not decode as it is."""
    try:
        return str(make_header(decode_header(field)))
    except (HeaderParseError, LookupError, ValueError):
        return field


def _address(field: str) -> str:
    name, address = parseaddr(_unfolded(field))
    name = _header_text(name)
    return f"{name} <{address}>" if name and address else name or address


def _plain(lines: Sequence[str], strip: int | None) -> Commit:
    """Return the one commit of a file without mails: its head is that of Debian's DEP-3, of ``git show``, or prose."""
    changes_at = _begins(lines)
    head = list(takewhile(lambda line: line.rstrip() != "---", lines[:changes_at]))
    shown = [line for line in head if line.startswith("commit ")]
    if len(shown) > 1:
        raise LexError("expected the diff of one commit: `git format-patch` writes several as mails", 1)
    if shown:
        author = next((line for line in head if line.startswith("Author: ")), "").partition(": ")[2]
        message = [line[4:] for line in head if line.startswith("    ")]
        subject, _, text = "".join(message).partition("\n")
        commit = replace(_commit(subject, text, shown[0].split()[1]), author=author.strip())
    else:
        fields = _dep3(head)
        subject, _, text = (fields.get("description") or fields.get("subject") or "").partition("\n")
        if not fields:
            subject, _, text = "".join(head).strip().partition("\n")
        commit = _commit(subject, text, "", "\n".join([fields.get("origin", ""), "".join(head)]))
        commit = replace(commit, author=fields.get("author") or fields.get("from") or "")
    return replace(commit, changes=_changes(lines, changes_at, 1, strip))


def _dep3(head: Sequence[str]) -> dict[str, str]:
    """Return the fields of a head in the form of DEP-3, by their names in lower case; the first of each counts."""
    fields, name = dict[str, str](), ""
    for line in head:
        if match := _FIELD.match(line):
            name = match[1].lower()
            if name in fields:
                name = ""
            else:
                fields[name] = match[2].rstrip("\r\n")
        elif name and line[0] in " \t":
            text = line.strip()
            fields[name] += "\n" + ("" if text == "." else text)
        else:
            name = ""
    return fields if {"description", "subject", "author", "from", "origin", "bug", "forwarded"} & fields.keys() else {}


def _commit(subject: str, description: str, hash_: str, head: str = "") -> Commit:
    """Return a commit without its changes; the link and the number of the pull request are found in its texts."""
    tags = _TAGS.match(subject)
    subject = " ".join(subject[tags.end() if tags else 0 :].split())
    texts = head or f"{subject}\n{description}"
    link, pull = _URL.search(texts), _PULL.search(texts)
    squashed = re.search(r"\(#(\d{1,9})\)$", subject)  # a merge of GitHub's that makes one commit
    number = squashed or pull
    found = _COMMIT.search(texts)
    return Commit(
        subject=subject,
        description=description.strip(),
        link=link[0] if link else "",
        pull_request=int(number[1]) if number else None,
        commit=hash_ or (found[1] if found else ""),
        changes=(),
    )


# --- the changes -----------------------------------------------------------------------------------------------------


def _begins(lines: Sequence[str], after: int = 0) -> int:
    """Return the index of the line with which the changes begin; the number of lines if there are none."""
    return next((at for at in range(after, len(lines)) if _is_start(lines, at)), len(lines))


def _is_start(lines: Sequence[str], at: int) -> bool:
    """Tell whether the part of a file begins with a line."""
    line = lines[at]
    if line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
        return True
    if line.startswith("--- "):
        return "".join(lines[at + 1 : at + 2]).startswith("+++ ")
    before = lines[at - 1] if at else ""
    return line.startswith(("Binary files ", "Files ")) and before.startswith("diff ") and bool(_BINARY.match(line))


def _changes(lines: Sequence[str], at: int, first: int, strip: int | None) -> tuple[FileChange, ...]:
    """Return the changes from a line on. ``first`` is the number of line 0 in the patch file."""
    for number, line in enumerate(lines[:at]):
        if _ONLY_IN.match(line) and "".join(lines[number + 1 : number + 2]).startswith(("diff ", "Only in ", "--- ")):
            raise _only_in(line, first + number)
    parts = list[_Part]()
    while at < len(lines):
        line = lines[at]
        if _is_start(lines, at):
            part = _Part(lines, at, first)
            parts.append(part)
            at = part.end
        elif line.rstrip() == "--":
            rest = next((n for n in range(at, len(lines)) if _is_start(lines, n)), None)
            if rest is not None:
                raise LexError("expected the end of the mail, found another diff behind its signature", first + rest)
            break
        elif _ONLY_IN.match(line):
            raise _only_in(line, first + at)
        elif line[0] in " +-\\@" and line.strip():
            raise LexError(f"expected a hunk with the lines that its head counts, found {line[:60]!a}", first + at)
        else:
            at += 1  # ``Index: FILE``, a command of diff, a blank line
    known = {part.strip for part in parts if part.strip is not None}
    default = known.pop() if len(known) == 1 else None
    changes = tuple(part.change(strip, default) for part in parts)
    for paths in ([c.before for c in changes if not c.copied], [c.after for c in changes]):
        for number, path in enumerate(paths):
            if path is not None and path in paths[:number]:
                again = next(c.line for c in reversed(changes) if path in (c.before, c.after))
                raise LexError(f"{path!a} occurs twice: several commits, of which the diff is one for all", again)
    return changes


def _only_in(line: str, number: int) -> LexError:
    return LexError(f"expected the whole change, found {line.strip()[:80]!a}: `diff -N` writes such files", number)


class _Part:
    """The part of a patch file about one file, as it is written: names still have what ``strip`` takes off."""

    def __init__(self, lines: Sequence[str], at: int, first: int) -> None:
        self.lines = lines
        self.at = at
        self.first = first
        self.start = at
        self.git = lines[at].startswith("diff ")
        self.names = list[str | None]()
        """The names of ``---`` and ``+++``; None for no file."""
        self.stamps = list[str]()
        self.fields = dict[str, str]()
        self.binary = False
        self.head = ""
        if self.git:
            self._git_head()
        elif lines[at].startswith("--- "):
            self._names()
        else:
            self._binary(self._take())
        self.hunks = tuple(self._hunks())
        self.end = self.at
        self.text = "".join(lines[self.start : self.end])
        if not (self.git or self.hunks or self.binary):
            raise self._error("a hunk")

    @property
    def strip(self) -> int | None:
        """The number of directories to take off, by the two names; None if one of them says nothing."""
        old, new = self._pair()
        if old is None or new is None:
            return None
        if self._renames():
            return int((old, new) != (self.fields["from"], self.fields["to"]))
        if old == new or self._is_backup(old, new):
            return 0
        return 1 if _below(old) == _below(new) != "" else None

    def change(self, strip: int | None, default: int | None) -> FileChange:
        """Return what the part says. LexError: no name remains, or its lines contradict each other."""
        number = strip if strip is not None else self.strip
        if number is None:
            sides = [name for name in self._pair() if name]
            number = 1 if sides and all(name.startswith(("a/", "b/")) for name in sides) else default
        if number is None:
            raise self._error("two names by which one sees how many directories to take off (`-p0` or `-p1`)", 0)
        old, new = (self._stripped(name, number) for name in self._pair())
        if self._renames():
            old, new = (self._stripped(self.fields[side], max(0, number - 1)) for side in ("from", "to"))
        if old is not None and new is not None and not self._renames():
            if old != new and not self._is_backup(old, new):
                raise self._error(f"the same name on both sides, or a rename; found {old!a} and {new!a}", 0)
            old = new
        created, deleted = self._created(), self._deleted()
        contradiction = created and (deleted or any(hunk.before for hunk in self.hunks) or self._renames())
        contradiction = contradiction or (deleted and (any(hunk.after for hunk in self.hunks) or self._renames()))
        if (old is None and not created) or (new is None and not deleted) or contradiction:
            raise self._error("a file that is there before the change or after it, as its lines say", 0)
        index = _INDEX.fullmatch(self.fields.get("index", ""))
        blobs = [hash_ if hash_.strip("0") else "" for hash_ in index.groups()[:2]] if index else ["", ""]
        mode = (index[3] if index else "") or ""
        before = self.fields.get("old mode") or self.fields.get("deleted file mode") or ("" if created else mode)
        after = self.fields.get("new mode") or self.fields.get("new file mode") or ("" if deleted else mode)
        if not (self.hunks or self.binary) and {before, after} <= {"", "100644", "100755"}:
            is_empty = not all(blobs) and any(name.startswith("".join(blobs)) for name in _EMPTY)
            if blobs[0] != blobs[1] and not is_empty:
                raise self._error("a hunk, since the `index` line has two contents, and neither is empty", 0)
            if old == new and not (created or deleted) and before == after:
                raise self._error("a change of the file", 0)
        return FileChange(
            before=None if created else old,
            after=None if deleted else new,
            mode_before=before,
            mode_after=after,
            blob_before=blobs[0],
            blob_after=blobs[1],
            copied="copy" in self.fields,
            hunks=self.hunks,
            binary=self.binary,
            line=self.first + self.start,
            text=self.text,
        )

    # --- reading ---

    def _take(self) -> str:
        line = self.lines[self.at]
        self.at += 1
        return line.rstrip("\r\n")

    def _peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def _error(self, expected: str, offset: int | None = None) -> LexError:
        at = self.at if offset is None else self.start + offset
        found = self.lines[at].rstrip("\r\n")[:80] if at < len(self.lines) else "the end"
        return LexError(f"expected {expected}, found {found!a}", self.first + at)

    def _git_head(self) -> None:
        self.head = self._take()
        if not self.head.startswith("diff --git "):
            raise self._error("the diff of a commit against one other, and not that of a merge", 0)
        while self.at < len(self.lines):
            line = self._peek().rstrip("\r\n")
            if line.startswith("--- "):
                self._names()
                return
            if line == "GIT binary patch":
                self._take()
                self._git_binary()
                return
            if _BINARY.fullmatch(line):
                self._binary(self._take())
                return
            if not self._extended(line):
                if line[:1] not in ("", "@") and not self._ends_head(line):
                    raise self._error("a line of git's own in the head of a file")
                return
            self._take()

    def _ends_head(self, line: str) -> bool:
        return _is_start(self.lines, self.at) or line.rstrip() == "--"

    def _extended(self, line: str) -> bool:
        """Note a line of git's head of a file; return whether it is one."""
        if _INDEX.fullmatch(line):
            self._note("index", line)
        elif match := re.fullmatch(r"(old mode|new mode|new file mode|deleted file mode) (\d{6})", line):
            self._note(match[1], match[2])
        elif match := re.fullmatch(r"(rename|copy) (from|to) (.+)", line):
            self._note(match[2], _name(match[3], self.first + self.at))
            self.fields[match[1]] = "yes"
        else:
            return re.fullmatch(r"(?:dis)?similarity index \d{1,3}%", line) is not None
        return True

    def _note(self, key: str, value: str) -> None:
        if key in self.fields:
            raise self._error("each line of the head of a file once")
        self.fields[key] = value

    def _names(self) -> None:
        """Read the lines ``---`` and ``+++``."""
        for sign in ("--- ", "+++ "):
            if not self._peek().startswith(sign):
                raise self._error(f"`{sign}FILE`")
            line = self.first + self.at
            text = self._take()[4:]
            stamp = _STAMP.fullmatch(text) if not text.startswith('"') else re.fullmatch(r'"(?:[^"\\]|\\.)*"(.*)', text)
            name = _name(text[: stamp.start(1)].rstrip("\t") if stamp and not text.startswith('"') else text, line)
            name = name.rstrip() if stamp and not self.git else name
            self.names.append(None if name == _NULL else name)
            self.stamps.append(stamp[1].strip() if stamp else "")

    def _binary(self, line: str) -> None:
        self.binary = True
        match = _BINARY.fullmatch(line)
        if match and not self.git:
            self.names = [None if name == _NULL else name for name in match.groups()]
            self.stamps = ["", ""]

    def _git_binary(self) -> None:
        self.binary, blocks = True, 0
        while re.fullmatch(r"(?:literal|delta) \d+\r?\n", self._peek()):
            self._take()
            blocks += 1
            while re.fullmatch(r"[A-Za-z][!-~]+\r?\n", self._peek()):
                self._take()
            if self._peek().strip():
                raise self._error("a line of a binary patch, and a blank one behind the last")
            self.at += self.at < len(self.lines)
        if not blocks:
            raise self._error("`literal` or `delta`, and its size")

    def _hunks(self) -> Iterator[Hunk]:
        while not self.binary and self._peek().startswith("@@ "):
            yield self._hunk()

    def _hunk(self) -> Hunk:
        head, start = _HUNK.fullmatch(self._peek()), self.at
        damaged = LexError(
            f"expected a hunk with the lines that its head counts, found {self._peek()[:60].rstrip()!a}",
            self.first + start,
        )
        if not head:
            raise damaged
        self.at += 1
        left = {"-": int(head[2] or 1), "+": int(head[4] or 1)}
        rows = list[tuple[str, str]]()
        while left["-"] or left["+"]:
            line = self._peek()
            if line == "\n":
                line = " \n"  # some mailers take the blank of an empty line away
            if line[:1] == "\\" and rows:
                self._no_newline(rows)
                continue
            counted = "-+" if line[:1] == " " else line[:1]
            if not counted or counted not in "-+" or not all(left[sign] for sign in counted):
                raise damaged
            for sign in counted:
                left[sign] -= 1
            rows.append((line[0], line[1:]))
            self.at += 1
        if self._peek().startswith("\\ "):
            self._no_newline(rows)
        for sign in "-+":
            side = [line for s, line in rows if s in (" ", sign)]
            if any(not line.endswith("\n") for line in side[:-1]):
                raise damaged
        if not rows:
            raise damaged
        if all(sign == " " for sign, _ in rows):
            raise LexError("expected a hunk that changes a line, found context alone", self.first + start)
        return Hunk(int(head[1]), int(head[3]), tuple(rows))

    def _no_newline(self, rows: list[tuple[str, str]]) -> None:
        """Take ``\\ No newline at end of file``, which is about the line above it."""
        sign, line = rows[-1]
        if not line.endswith("\n"):
            raise self._error("a line of the hunk")
        rows[-1] = (sign, line[:-1])
        self.at += 1

    # --- names ---

    def _renames(self) -> bool:
        if not {"rename", "copy"} & self.fields.keys():
            return False
        if not {"from", "to"} <= self.fields.keys():
            raise self._error("both names of a rename or a copy", 0)
        return True

    def _pair(self) -> tuple[str | None, str | None]:
        """Return the two names. Those of ``---`` and ``+++`` count, and must be those of ``diff --git``."""
        if not self.git:
            return self.names[0], self.names[1]
        line = self.first + self.start
        pairs = list(_two_names(self.head.removeprefix("diff --git "), line))
        if self.names:
            mine = [pair for pair in pairs if all(n in (None, p) for n, p in zip(self.names, pair, strict=True))]
            if not mine:
                raise self._error(f"the names of the lines below it, {' and '.join(map(ascii, self.names))}", 0)
            pairs = mine
        if self._renames():
            ends = [pair for pair in pairs if _ends(pair[0], self.fields["from"]) and _ends(pair[1], self.fields["to"])]
        else:
            ends = [pair for pair in pairs if pair[0] == pair[1] or _below(pair[0]) == _below(pair[1]) != ""]
        if not ends:
            raise self._error("`diff --git a/FILE b/FILE`, with the names of one file", 0)
        return ends[0]

    def _stripped(self, name: str | None, number: int) -> str | None:
        if name is None:
            return None
        parts = name.split("/")
        if len(parts) <= number:
            raise self._error(f"a name with more than {number} directories to take off, found {name!a}", 0)
        return "/".join(parts[number:])

    @staticmethod
    def _is_backup(old: str, new: str) -> bool:
        """Tell whether a name is that of the same file before the change, as patch(1) and quilt keep it."""
        return old in (f"{new}.orig", f"{new}.old", f"{new}~")

    def _created(self) -> bool:
        return self._is_absent(0, "new file mode")

    def _deleted(self) -> bool:
        return self._is_absent(1, "deleted file mode")

    def _is_absent(self, side: int, field: str) -> bool:
        """Tell whether there is no file on a side."""
        null = bool(self.names) and self.names[side] is None
        if self.git:
            if null and field not in self.fields:
                raise self._error(f"`{field}`, since the name of one side is {_NULL}", 0)
            return field in self.fields
        if null or len(self.hunks) != 1 or (self.hunks[0].line, self.hunks[0].line_after)[side]:
            return null
        return _is_epoch(self.stamps[side]) if _TIME.fullmatch(self.stamps[side]) else True


def _is_epoch(stamp: str) -> bool:
    """Tell whether a time stamp is that which diff(1) gives a file that is not there."""
    match = _TIME.fullmatch(stamp)
    if not match:
        return False
    try:
        return datetime.strptime(f"{match[1]} {match[2]}", "%Y-%m-%d %H:%M:%S %z").timestamp() == 0
    except ValueError:  # no month 13
        return False


def _two_names(text: str, line: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that ``diff --git`` can mean: git quotes no blank. LexError: there is none."""
    if len(text) > 2 * _LONGEST_NAME:
        raise LexError("expected names of files, found a longer text", line)
    quoted = r'"(?:[^"\\]|\\.)*"'
    if match := re.fullmatch(rf"({quoted}) (.+)", text) or re.fullmatch(rf"(.+) ({quoted})", text):
        yield _name(match[1], line), _name(match[2], line)
        return
    for at, sign in enumerate(text):
        if sign == " ":
            yield text[:at], text[at + 1 :]


def _name(text: str, line: int) -> str:
    """Return a name, of which git and diff(1) quote one with special signs as C does. LexError: that is damaged."""
    if not text.startswith('"'):
        return text
    match = re.match(r'"((?:[^"\\]|\\.)*)"', text)
    body = match[1].encode("utf-8") if match else b"\\"
    if b"\\" in _ESCAPE.sub(b"", body):
        raise LexError(f"expected a name in quotes, found {text[:80]!a}", line)
    data = _ESCAPE.sub(lambda m: bytes([int(m[1], 8) if m[1] else _ESCAPES[m[2][0]]]), body)
    return data.decode("utf-8", "surrogateescape")


def _below(name: str) -> str:
    return name.partition("/")[2]


def _ends(name: str, end: str) -> bool:
    return name == end or name.endswith(f"/{end}")
