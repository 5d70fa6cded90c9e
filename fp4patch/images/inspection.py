"""Labels and proof of an image, or of a directory that a build wrote: read without running anything, checked again."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fp4patch.core.errors import ImageError
from fp4patch.core.extra import install
from fp4patch.core.verdict import verdict_on
from fp4patch.images import engine, provenance
from fp4patch.images.image import PROOF, ProofReport, Statement

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.images import Image

SOURCES = "/src"
"""Directory of the patched trees in the stages before the runtime image."""

_LARGEST = 1 << 28
"""Bytes that are read of one directory of an image: a proof with its page has some megabytes."""


def of_directory(folder: Path) -> ProofReport | None:
    """Check the proof in a directory that ``fp4patch build --output`` wrote; None if there is none.

    ImageError: a document in it is damaged.
    """
    for place in (folder, folder / "proof"):  # the latter beside an exported wheel
        documents = (path for pattern in ("*.json", "receipts/*.json") for path in place.glob(pattern))
        proof = {path.relative_to(place).as_posix(): path.read_bytes() for path in documents if path.is_file()}
        if provenance.receipts_of(proof) and {"pins.json", "verify.json"} & set(proof):
            return _checked(str(folder), "", {}, proof, ["a directory has no labels"])
    return None


def of_image(name: str) -> ProofReport | None:
    """Check the labels and the proof of an image in the container engine; None if it has neither, or is not there.

    Without access to the engine the report has no statement, and a note with the reason. ImageError: a document of the
    proof is damaged.
    """
    try:
        import docker  # noqa: PLC0415 - an extra
        from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415 - the same
    except ModuleNotFoundError:
        return _unread(name, f"it takes the docker package: {install('images')}")
    host = engine.host()  # the package knows nothing of docker's contexts
    try:
        client = docker.from_env(environment=os.environ | ({"DOCKER_HOST": host} if host else {}))
    except DockerException:
        return _unread(name, "no docker engine responds")
    try:
        image = client.images.get(name)
        container = client.containers.create(image, command=["-"], network_disabled=True)
        try:
            return _of_container(name, image, container)
        finally:
            container.remove()
    except ImageNotFound:
        return None
    except DockerException as error:
        raise ImageError(f"the engine refuses: {error}", help="is the engine healthy?") from error
    finally:
        client.close()


def _unread(name: str, why: str) -> ProofReport:
    return ProofReport(name, "", {}, {}, (), (f"labels and proof were not read: {why}",))


def _of_container(name: str, image: Image, container: Container) -> ProofReport | None:
    labels = {key: value for key, value in image.labels.items() if key.startswith(provenance.OURS)}
    proof = _files(container, PROOF)
    if not (labels or provenance.receipts_of(proof)):
        return None
    expected = provenance.files_of(provenance.receipts_of(proof))
    statements, notes = _trees(container, expected)
    if not labels:
        notes.append(f"the image has no labels {provenance.OURS}*")
    return _checked(name, str(image.id), labels, proof, notes, statements)


def _checked(
    subject: str,
    image: str,
    labels: Mapping[str, str],
    proof: Mapping[str, bytes],
    notes: list[str],
    statements: list[Statement] | None = None,
) -> ProofReport:
    statements = [*provenance.recheck(proof, labels or None), *(statements or [])]
    if "binaries.json" not in proof:
        notes = [*notes, "no binaries.json: vLLM itself was not built here, so no built file was looked at"]
    return ProofReport(subject, image, labels, provenance.pins_of(proof), tuple(statements), tuple(notes))


def _files(container: Container, folder: str) -> dict[str, bytes]:
    """Return every file below a directory of the container, by its relative name; none if it is missing."""
    from docker.errors import NotFound  # noqa: PLC0415 - an extra

    try:
        stream, _ = container.get_archive(folder)
    except NotFound:
        return {}
    packed, files = io.BytesIO(), {}
    for piece in stream:
        packed.write(piece)
        if packed.tell() > _LARGEST:
            raise ImageError(
                f"{folder} of the image has more than {_LARGEST >> 20} MB", help="no proof has; do not use it"
            )
    packed.seek(0)
    with tarfile.open(fileobj=packed) as tar:
        for member in tar:
            content: Any = tar.extractfile(member) if member.isfile() else None
            if content:
                files[member.name.partition("/")[2] or member.name] = content.read()
    return files


def _trees(container: Container, expected: Mapping[str, str]) -> tuple[list[Statement], list[str]]:
    """Compare the patched files themselves with the receipts, where the image still has the trees."""
    statements, notes = [], []
    for target in sorted({path.partition("/")[0] for path in expected}):
        names = [path for path in expected if path.startswith(f"{target}/")]
        contents = {path: b"".join(_files(container, f"{SOURCES}/{path}").values()) for path in names}
        if not any(contents.values()):
            notes.append(f"no {SOURCES}/{target}: the patched files of {target} are not in this image")
            continue
        wrong = [path for path in names if hashlib.sha256(contents[path]).hexdigest() != expected[path]]
        detail = f"not as the receipt states: {', '.join(wrong)}" if wrong else f"{len(names)} files as it states"
        statements.append(Statement(f"files of {target}", verdict_on(not wrong), detail))
    return statements, notes
