"""The causes in the log of a build or a program: messages.toml has each message with its cause and remedy."""

import codecs
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import read_table
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.errors import UsageError
from fp4patch.core.wording import listed
from fp4patch.doctor import log_statements
from fp4patch.doctor.result import FindingsReport

LOG = re.compile(r"(?!CMakeLists\.txt$).*\.(log|txt|out|err|stdout|stderr|md)(\.\d+)?|-")
"""Names of logs; ``-`` is standard input."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What PowerShell begins a text with where it redirects."""
# Example: \x1b[31m
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
_LONGEST = 4000
"""Characters of a line that are searched."""


@dataclass(frozen=True)
class Message:
    """A message of a compiler, a library or a driver; messages.toml explains the fields."""

    title: str
    words: tuple[str, ...]
    pattern: str
    cause: str
    remedy: str
    link: str = ""
    harmless: bool = False
    beside: str = ""
    lines: int = 1


@cache
def messages() -> tuple[Message, ...]:
    """Return every known message."""
    file = resources.files(__package__).joinpath("messages.toml")
    return read_table(file, dict[str, tuple[Message, ...]])["message"]


def text_of(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``. UsageError where it is not readable."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}", help="check its name and permissions") from error
    is_wide = content.startswith(UTF16) and 3 * content.count(0) > len(content)
    encoding = "utf-16" if is_wide else "utf-8-sig"
    return _ESCAPES.sub("", content.decode(encoding, errors="replace"))


def is_text(path: Path) -> bool:
    """Return whether a file without a suffix begins as a text does: ``nohup``, ``build-output``."""
    if path.suffix or not path.is_file():
        return False
    with path.open("rb") as opened:
        begin = opened.read(4096)
    return bool(begin.strip()) and (begin.startswith(UTF16) or b"\0" not in begin)


def examine(name: str, whole: str, gpus: Sequence[Arch] = ()) -> FindingsReport:
    """Return what is wrong by the text of a log, then what it states about targets and backends.

    ``gpus``: those that are asked about; empty if none is.
    """
    text = "\n".join(line[:_LONGEST] for line in whole.split("\n"))
    known = [finding for _, finding in sorted(_known(text), key=lambda pair: pair[0])]
    stated = [*log_statements.read(whole, text, gpus or GPUS, named=bool(gpus))]
    said = f", and states {listed(dict.fromkeys(finding.subject for finding in stated))}" if stated else ""
    help_text = "" if stated else "name the source tree, the build directory, or what was built"
    none = Finding(Level.NONE, "log", f"it has none of the known messages{said}", help_text)
    findings = sorted(known or [none], key=lambda finding: finding.level is not Level.RED)
    return FindingsReport(name, (*findings, *stated))


def _known(text: str) -> Iterator[tuple[int, Finding]]:
    """Yield the first occurrence of each message, with its position; a line belongs to the first message that fits."""
    taken = set[int]()
    for message in messages():
        pattern, first = re.compile(message.pattern), None
        lines = _lines(text, message)
        if lines and message.beside and not re.search(message.beside, text):
            continue
        for begin, end in lines:
            if begin not in taken and (found := pattern.search(text, begin, end)):
                taken.add(begin)
                first = first or _finding(message, found, begin)
        if first:
            yield first


def _lines(text: str, message: Message) -> list[tuple[int, int]]:
    """Return where each line with one of the message's words begins, and where what its pattern can span ends."""
    begins = set[int]()
    for word in message.words:
        at = text.find(word)
        while at >= 0:
            begins.add(text.rfind("\n", 0, at) + 1)
            at = text.find(word, _end(text, at))
    found = []
    for begin in sorted(begins):
        end = begin
        for _ in range(message.lines):
            end = _end(text, end + 1)
        found.append((begin, end))
    return found


def _end(text: str, at: int) -> int:
    """Return the end of the line that a position is in."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _finding(message: Message, found: re.Match[str], begin: int) -> tuple[int, Finding]:
    text, values = found.string, found.groupdict(default="")
    quoted = " ".join(line.strip() for line in text[begin : _end(text, found.end())].split("\n"))[:300]
    level = Level.YELLOW if message.harmless else Level.RED
    about = f"{quoted}: {message.cause.format(**values)}"
    line = f"line {text.count(chr(10), 0, begin) + 1}"
    return begin, Finding(level, line, about, message.remedy.format(**values), message.title, message.link)
