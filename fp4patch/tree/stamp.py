"""The last line of every file that fp4patch writes: a comment that identifies it if its receipt is missing.

``// fp4patch turbo: cutlass/e2m1-guard 1; pristine <SHA-256>; written <SHA-256 of all that is above this line>``

A receipt can be lost (``git clean -x`` takes it away, since git ignores it) or left behind when a file is copied. This
line still identifies the file, independent of the release, the language and the edit. To apply something to such a file
would put one variant on top of another, and nothing could be reverted.
"""

import hashlib
import re
from dataclasses import dataclass

from fp4patch.edits.language import language

_LINE = re.compile(
    rb"^(?://|#) fp4patch (?P<variant>[\w.-]*): (?P<patches>[^;\r\n]*); "
    rb"pristine (?P<pristine>[0-9a-f]{64}); written (?P<written>[0-9a-f]{64})\r?$",
    re.MULTILINE,
)
TAIL = 4096
"""Bytes at the end of a file that hold its stamp, however many patches it names."""


@dataclass(frozen=True)
class Stamp:
    """A file that fp4patch wrote: for which variant, by which patches, and of which pristine bytes (SHA-256)."""

    variant: str
    patches: tuple[str, ...]
    pristine_sha256: str
    intact: bool
    """True if the file is unchanged since fp4patch wrote it."""


def stamped(data: bytes, pristine: bytes, path: str, variant: str, patches: tuple[str, ...]) -> bytes:
    """Return the file with its stamp, which ends as the file ended: with a newline, or without one."""
    comment = "//" if language(path) == "c++" else "#"
    was, now = (hashlib.sha256(content).hexdigest() for content in (pristine, data))
    line = f"{comment} fp4patch {variant}: {', '.join(patches)}; pristine {was}; written {now}".encode()
    newline = b"\r\n" if b"\r\n" in data[-TAIL:] else b"\n"
    return data + line + newline if data.endswith(b"\n") else data + newline + line


def may_be_stamped(content: bytes) -> bool:
    """Pass each file that ends with a stamp."""
    return b"; pristine " in content[-TAIL:]


def unstamped(data: bytes) -> bytes:
    """Return the file as it was before :func:`stamped`; a file that ends without a stamp is returned as it is."""
    found = _last(data)
    if found is None or data[found.end() :].strip(b"\r\n"):
        return data
    above = data[: found.start()]
    return above if data.endswith(b"\n") else above.removesuffix(b"\n").removesuffix(b"\r")


def _last(data: bytes) -> re.Match[bytes] | None:
    found = None
    for found in _LINE.finditer(data) if b"; pristine " in data else ():  # noqa: B007 - the last one
        pass
    return found


def find_stamp(data: bytes) -> Stamp | None:
    """Return the stamp of a file, wherever it is in it by now; None if fp4patch did not write it."""
    found = _last(data)
    if found is None:
        return None
    above = data[: found.start()]
    sums = {hashlib.sha256(body).hexdigest() for body in (above, above.removesuffix(b"\n").removesuffix(b"\r"))}
    return Stamp(
        found["variant"].decode(),
        tuple(found["patches"].decode(errors="replace").split(", ")),
        found["pristine"].decode(),
        found["written"].decode() in sums and not data[found.end() :].strip(b"\r\n"),
    )
