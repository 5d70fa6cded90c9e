"""Unified diffs, as ``git apply`` accepts them."""

import io
import os


def unified(path: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file, as ``git apply`` takes it: only a line feed ends a line there."""
    import difflib  # noqa: PLC0415 - most commands print no diff

    one, other = (data.decode("utf-8", errors="surrogateescape") for data in (before, after))
    # ``splitlines`` would also cut at a form feed, or at a lone carriage return.
    before_lines, after_lines = (list(io.StringIO(text, newline="\n")) for text in (one, other))
    lines = difflib.unified_diff(before_lines, after_lines, _quoted(f"a/{path}"), _quoted(f"b/{path}"))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _quoted(name: str) -> str:
    """Quote a name as git does, if it has characters that could end the line or control a terminal."""
    if name.isprintable() and not set(name) & set('"\\'):
        return name
    escaped = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:03o}" for b in os.fsencode(name))
    return f'"{"".join(escaped)}"'
