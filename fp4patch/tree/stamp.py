"""The last line of every file that fp4patch writes: a comment that identifies it if its receipt is missing.

``// fp4patch turbo: cutlass/e2m1-guard 1; pristine <SHA-256>``

A receipt can be lost (``git clean -x`` takes it away, since git ignores it) or left behind when a file is copied. This
line still identifies the file, independent of the release, the language and the edit. To apply something to such a file
would put one variant on top of another, and nothing could be reverted.
"""

import re

from fp4patch.core.tree_path import is_source
from fp4patch.edits.language import language
from fp4patch.tree.files import sha256

_LINE = re.compile(
    rb"^(?://|#) fp4patch (?P<variant>[\w.-]*): (?P<patches>[^;\r\n]*); pristine (?:[0-9a-f]{64}|none)\r?$",
    re.MULTILINE,
)
_TAIL = 4096
"""Bytes at the end of a file that hold its stamp, however many patches it names."""


def stamped(data: bytes, pristine: bytes | None, path: str, variant: str, patches: tuple[str, ...]) -> bytes:
    """Return the file with its stamp, which ends as the file ended: with a newline, or without one.

    A file that is no source has none: JSON has no comments. Without pristine bytes the stamp says ``none``.
    """
    if not is_source(path.rpartition("/")[2]):
        return data
    comment = "//" if language(path) == "c++" else "#"
    line = f"{comment} fp4patch {variant}: {', '.join(patches)}; pristine {sha256(pristine) or 'none'}".encode()
    newline = b"\r\n" if b"\r\n" in data[-_TAIL:] else b"\n"
    return data + line + newline if data.endswith(b"\n") else data + newline + line


def find_stamp(data: bytes) -> re.Match[bytes] | None:
    """Return the stamp near the end of a file, with its ``variant`` and ``patches``; None if fp4patch did not write it.

    A file that was edited below it has it too.
    """
    return _LINE.search(data, max(0, len(data) - _TAIL)) if b"; pristine " in data[-_TAIL:] else None
