"""Container images: what their manifests list, which files their layers leave visible, and images of an engine.

An image comes as a tar (``docker save``, OCI), or from a registry.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from fp4patch.binaries.containers import WHITEOUT
from fp4patch.core.errors import BinaryError, UsageError

_OPAQUE = ".wh..wh..opq"


@dataclass(frozen=True)
class Image:
    """One image of an archive: its platform, and its layers."""

    platform: str
    """``linux/arm64``; empty where it is not stated."""
    layers: tuple[str, ...]
    """Names of the archive's members, the lowest layer first."""


def may_describe(name: str) -> bool:
    """Return whether ``images`` may need a member of an image's tar."""
    return name in ("manifest.json", "index.json") or name.startswith("blobs/")


def images(documents: dict[str, bytes]) -> tuple[list[Image], list[str]] | None:
    """Return the images of an archive by its JSON, and the names of those whose manifests are not in it.

    None if it is no image. Raises BinaryError where the JSON is damaged.
    """
    try:
        if "index.json" in documents:  # an OCI layout, also in what docker has saved since version 25
            return _indexed(documents)
        if "manifest.json" in documents:  # docker save
            saved = json.loads(documents["manifest.json"])
            return [Image("", tuple(map(str, saved_image["Layers"]))) for saved_image in saved], []
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BinaryError(f"the image's manifest is damaged: {error!r}", help="save the image again") from error
    return None


_EMPTY = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
"""Digest of a layer without files, 1,024 zeros, which docker makes of a step that changes nothing."""

_KIND = "vnd.docker.reference.type"


def _indexed(documents: dict[str, bytes]) -> tuple[list[Image], list[str]]:
    """Follow an index to its manifests, perhaps by way of another. Attestations hold no code."""
    found, missing, seen = [], [], set()
    pending = list(json.loads(documents["index.json"])["manifests"])
    while pending:
        descriptor = pending.pop(0)
        platform = platform_of(descriptor.get("platform") or {})
        blob = _blob(descriptor)
        if is_attestation(descriptor) or (blob, platform) in seen:
            continue
        seen.add((blob, platform))
        if blob not in documents:
            missing.append(platform or descriptor["digest"])
            continue
        document = json.loads(documents[blob])
        if "layers" in document:
            layers = tuple(_blob(layer) for layer in document["layers"] if layer["digest"] != _EMPTY)
            stated = documents.get(_blob(document["config"]), b"{}") if "config" in document else b"{}"
            found.append(Image(platform or platform_of(json.loads(stated)), layers))
        else:
            pending += document["manifests"]
    return found, missing


def is_attestation(descriptor: dict[str, Any]) -> bool:
    """Return whether an entry of an index is no image, but what a builder attests of one."""
    return bool((descriptor.get("annotations") or {}).get(_KIND) == "attestation-manifest")


def platform_of(stated: dict[str, Any]) -> str:
    """Return ``linux/arm64``, as an index or an image's configuration states it; empty where it does not."""
    parts = (stated.get("os"), stated.get("architecture"))
    return "/".join(map(str, parts)) if all(parts) else ""


def blob_name(digest: str) -> str:
    """Return the name of a blob in an OCI layout."""
    return f"blobs/{digest.replace(':', '/')}"


def _blob(descriptor: dict[str, Any]) -> str:
    return blob_name(str(descriptor["digest"]))


def visible(layers: list[list[str]], links: list[Mapping[str, str]]) -> set[tuple[int, str]]:
    """Return the layer of each file whose content is visible, given each layer's names: a later layer replaces or
    deletes files.

    ``.wh.NAME`` deletes NAME, ``.wh..wh..opq`` deletes everything that lower layers have in its directory (OCI image
    layer). A directory takes the place of a file, and a file or a link that of a directory. ``links`` has each hard
    link of a layer, and the file of this layer that it names.
    """
    seen: dict[str, int] = {}
    for number, names in enumerate(layers):
        gone, emptied, here = set[str](), set[str](), dict[str, int]()
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
    found = {(number, name) for name, number in seen.items()}
    return found | {(number, links[number][name]) for number, name in found if name in links[number]}


def _has_above(name: str, places: Set[str]) -> bool:
    """Return whether one of the directories above a file is among these; all are below the root, ``""``."""
    return "" in places or any(name[:at] in places for at, letter in enumerate(name) if letter == "/")


@contextmanager
def save(reference: str) -> Iterator[IO[bytes]]:
    """An image as a tar, from the first engine on PATH; UsageError if there is none, or it has no such image."""
    for engine in ("docker", "podman"):
        if program := shutil.which(engine):
            break
    else:
        raise UsageError(
            f"there is no file or package {reference}, and there is no docker or"
            " podman that could have an image of that name",
            help="check the path; or save the image where it is (docker save -o FILE.tar) and name the file",
        )
    command = [program, "save", *(["--format", "oci-archive"] if engine == "podman" else []), "--", reference]
    with tempfile.TemporaryFile() as said:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said)
        assert running.stdout is not None
        try:
            head = running.stdout.peek(1)[:1]  # type: ignore[attr-defined]  # a BufferedReader
            if head:
                yield running.stdout
        finally:
            running.stdout.close()
            running.terminate()
            running.wait()
        if not head:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()
            raise UsageError(
                f"there is no file or package {reference}, and {engine} has no image of that name:"
                f" {words[-1] if words else 'no message'}",
                help=f"check the path; or check the image's name with `{engine} images`, or pull it",
            )
