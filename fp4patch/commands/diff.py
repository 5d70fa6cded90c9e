"""Unified diffs, as ``git apply`` accepts them."""

import difflib
import os
import re


def unified(path: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file, as ``git apply`` takes it: only a line feed ends a line there."""
    one, other = (data.decode("utf-8", errors="surrogateescape") for data in (before, after))
    lines = difflib.unified_diff(_lines(one), _lines(other), _quoted(f"a/{path}"), _quoted(f"b/{path}"))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split into lines with their ends. ``splitlines`` would also cut at a form feed, or at a lone carriage return."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _quoted(name: str) -> str:
    """Quote a name as git does, if it has characters that could end the line or control a terminal."""
    if name.isprintable() and not set(name) & set('"\\'):
        return name
    escaped = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:03o}" for b in os.fsencode(name))
    return f'"{"".join(escaped)}"'
