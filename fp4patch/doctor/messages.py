"""The first cause in the log of a build or a program: messages.toml has each message with its cause and remedy."""

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fp4patch.binaries.findings import Level
from fp4patch.binaries.known_programs import read_table
from fp4patch.core.document import Document
from fp4patch.core.errors import UsageError

LOG = re.compile(r".*\.(log|txt|out|err)|-")
"""Names of logs; ``-`` is standard input."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
_LONGEST = 4000
"""Characters of a line that are searched."""


@dataclass(frozen=True)
class Message:
    """A message of a compiler, a library or a driver; messages.toml explains the fields."""

    title: str
    pattern: str
    cause: str
    remedy: str
    link: str = ""
    harmless: bool = False


@dataclass(frozen=True)
class _Table:
    message: tuple[Message, ...]


@dataclass(frozen=True)
class LogFinding(Document):
    """A known message in a log."""

    line: int
    text: str
    """The line, without control characters."""
    message: str
    """Title of the message in docs/messages.md."""
    cause: str
    remedy: str
    link: str
    level: Level


@dataclass(frozen=True)
class LogReport(Document):
    """Known messages in one log, the first cause first."""

    path: str
    lines: int
    found: tuple[LogFinding, ...]
    """The first occurrence of each message, in the order of the log; harmless ones last."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of the messages; NONE for a log without a known one."""
        return tuple(one.level for one in self.found) or (Level.NONE,)


@cache
def messages() -> tuple[Message, ...]:
    """Return every known message."""
    return read_table(resources.files("fp4patch.doctor").joinpath("messages.toml"), _Table).message


def examine(name: str) -> LogReport:
    """Read a log, or standard input for ``-``. UsageError where it is not readable."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}", help="check its name and permissions") from error
    found: dict[str, LogFinding] = {}
    lines = content.decode(errors="replace").split("\n")
    patterns = [(re.compile(one.pattern), one) for one in messages()]
    for number, line in enumerate(lines, 1):
        text = _ESCAPES.sub("", line[:_LONGEST])
        message = next((one for pattern, one in patterns if pattern.search(text)), None)
        if message and message.title not in found:
            level = Level.YELLOW if message.harmless else Level.RED
            found[message.title] = LogFinding(
                number, text.strip()[:300], message.title, message.cause, message.remedy, message.link, level
            )
    return LogReport(name, len(lines), tuple(sorted(found.values(), key=lambda one: one.level is not Level.RED)))
