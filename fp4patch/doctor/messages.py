"""The first cause in the log of a build or a program: messages.toml has each message with its cause and remedy."""

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import read_table
from fp4patch.core.errors import UsageError
from fp4patch.doctor.result import FindingsReport

LOG = re.compile(r".*\.(log|txt|out|err)|-")
"""Names of logs; ``-`` is standard input."""
# Example: \x1b[31m
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


@cache
def messages() -> tuple[Message, ...]:
    """Return every known message."""
    file = resources.files(__package__).joinpath("messages.toml")
    return read_table(file, dict[str, tuple[Message, ...]])["message"]


def examine(name: str) -> FindingsReport:
    """Read a log, or standard input for ``-``; harmless messages are last. UsageError where it is not readable."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}", help="check its name and permissions") from error
    found: dict[str, Finding] = {}
    patterns = [(re.compile(message.pattern), message) for message in messages()]
    for number, line in enumerate(content.decode(errors="replace").split("\n"), 1):
        text = _ESCAPES.sub("", line[:_LONGEST])
        message = next((message for pattern, message in patterns if pattern.search(text)), None)
        if message and message.title not in found:
            level = Level.YELLOW if message.harmless else Level.RED
            quoted = f"{text.strip()[:300]}: {message.cause}"
            found[message.title] = Finding(level, f"line {number}", quoted, message.remedy, message.title, message.link)
    help_text = "name the source tree, the build directory, or what was built"
    none = Finding(Level.NONE, "log", "none of the known messages is in it", help_text)
    findings = sorted(found.values(), key=lambda finding: finding.level is not Level.RED)
    return FindingsReport(name, tuple(findings) or (none,))
