"""Reads forward through a file of any size, holding only what is being looked at."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fp4patch.core.errors import BinaryError

CHUNK = 1 << 20
_STRETCH = 1 << 12
"""Bytes searched at a time: if one beginning occurs often, the others are not searched far beyond it."""


class Readable(Protocol):
    """The one thing that a file, a member of an archive and a pipe have in common."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102 - io's own


class Window:
    """A stream with a position; bytes before it are forgotten."""

    def __init__(self, stream: Readable, name: str, size: int, tick: Callable[[int], None]) -> None:
        self.name, self.size = name, size
        self._stream, self._tick = stream, tick
        self._held = bytearray()
        self._at = 0  # of the position, in what is held
        self._begin = 0  # of what is held, in the stream
        self._ended = False

    @property
    def position(self) -> int:
        """Bytes from the beginning of the stream."""
        return self._begin + self._at

    def peek(self, length: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        self._fill(length)
        with memoryview(self._held) as held:
            return bytes(held[self._at : self._at + length])

    def require(self, length: int, what: str) -> None:
        """Raise BinaryError if fewer bytes follow than something claims to have; nothing is read."""
        if length > (room := self.size - self.position):
            raise BinaryError(
                f"{self.name} is damaged: {what} at byte {self.position} has {length} bytes, and {room} follow",
                help="it was cut off, or has other contents than its name states; get it again",
            )

    def take(self, length: int, what: str) -> bytes:
        """Return the next bytes, all of them; BinaryError if the file ends before."""
        taken = self.peek(length)
        self.require(length, what)
        self._at += length
        if self._at > _STRETCH << 10:
            self._forget()
        return taken

    def skip(self, length: int, what: str) -> None:
        """Pass over bytes without keeping them; BinaryError if the file ends before."""
        while length:
            length -= len(self.take(min(length, CHUNK), what))

    def seek(self, beginnings: Sequence[bytes]) -> bool:
        """Go on to the next occurrence of one of these bytes; False, at the end, if there is none."""
        longest = max(map(len, beginnings))
        while True:
            self._fill(_STRETCH)
            end = self._at + _STRETCH
            found = [at for at in (self._held.find(each, self._at, end) for each in beginnings) if at >= 0]
            if found:
                self._at = min(found)
                return True
            if self._ended and end >= len(self._held):
                self._at = len(self._held)
                return False
            self._at = end - longest + 1

    def _forget(self) -> None:
        del self._held[: self._at]
        self._begin += self._at
        self._at = 0

    def _fill(self, length: int) -> None:
        if len(self._held) - self._at >= length or self._ended:
            return
        self._forget()
        while len(self._held) < length:
            piece = self._stream.read(max(CHUNK, length - len(self._held)))
            if not piece:
                self._ended, self.size = True, self._begin + len(self._held)
                return
            self._tick(len(piece))
            self._held += piece
