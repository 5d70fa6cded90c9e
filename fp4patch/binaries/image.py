"""Container images: the layers that a saved one lists, which files they leave visible, and images of an engine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fp4patch.binaries.containers import WHITEOUT
from fp4patch.binaries.stream_reader import Readable
from fp4patch.core import process
from fp4patch.core.errors import BinaryError, UsageError

_OPAQUE = ".wh..wh..opq"
MANIFEST = "manifest.json"
"""Member of an image's tar that lists its layers, as docker and podman save them."""


@dataclass(frozen=True)
class Image:
    """One image of an archive: its platform, and its layers."""

    platform: str
    """``linux/arm64``; empty where it is not stated."""
    layers: tuple[str, ...]
    """Names of the layers' tars, the lowest layer first."""


def images(stream: Readable) -> list[Image]:
    """Return the images of a tar by its manifest. Raises BinaryError where that is damaged."""
    try:
        content = b"".join(iter(lambda: stream.read(1 << 20), b""))
        return [Image("", tuple(map(str, saved_image["Layers"]))) for saved_image in json.loads(content)]
    except (ValueError, KeyError, TypeError) as error:
        raise BinaryError(f"the image's manifest is damaged: {error!r}", help="save the image again") from error


def visible(layers: list[list[str]]) -> set[tuple[int, str]]:
    """Return the layer of each file whose content is visible, given each layer's names: a later layer replaces or
    deletes files.

    ``.wh.NAME`` deletes NAME, ``.wh..wh..opq`` deletes everything that lower layers have in its directory (OCI image
    layer). A directory takes the place of a file, and a file or a link that of a directory.
    """
    seen: dict[str, int] = {}
    for number, names in enumerate(layers):
        gone = set[str]()
        emptied = set[str]()
        here = dict[str, int]()
        for name in names:
            place, _, base = name.rpartition("/")
            if base == _OPAQUE:
                emptied.add(place)
            elif base:
                gone.add(f"{place}/{base.removeprefix(WHITEOUT)}".lstrip("/"))
                here[name] = number
        above = gone | emptied
        gone |= {name[:-1] for name in names if name.endswith("/")}
        lower = {name: layer for name, layer in seen.items() if name not in gone and not _has_above(name, above)}
        seen = lower | here
    return {(number, name) for name, number in seen.items()}


def _has_above(name: str, places: Set[str]) -> bool:
    """Return whether one of the directories above a file is among these; all are below the root, ``""``."""
    return "" in places or any(name[:at] in places for at, letter in enumerate(name) if letter == "/")


@contextmanager
def save(reference: str) -> Iterator[IO[bytes]]:
    """An image as a tar, from the first engine on PATH; UsageError if there is none, or it has no such image."""
    program = shutil.which("docker") or shutil.which("podman")
    why = "there is no docker or podman that could have an image of that name"
    if program:
        asked = process.run([program, "image", "inspect", "--", reference], limit=None)
        message = asked.err.strip().rpartition("\n")[2] or "no message"
        why = f"{Path(program).name} has no image of that name: {message}" if asked.status else ""
    if not program or why:
        raise UsageError(
            f"there is no file or package {reference}, and {why}",
            help="check the name; or save the image where it is (docker save -o FILE.tar) and name the file",
        )
    with subprocess.Popen([program, "save", "--", reference], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield running.stdout
        finally:
            running.terminate()
