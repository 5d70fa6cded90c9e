"""Implementation of ``fp4patch inspect``: an image's claims, read without running it, and checked again."""

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
from fp4patch.images.image import PROOF, Finding, Inspection

if TYPE_CHECKING:
    from docker.models.containers import Container

SOURCES = "/src"
"""Directory of the patched trees in the stages before the runtime image."""


_LARGEST = 1 << 28
"""Bytes that are read of one directory of an image: a proof with its page has some megabytes."""


def inspect(subject: str) -> Inspection:
    """Re-check an image of the engine, or the directory of a proof that was exported.

    ImageError if there is no such image, no engine, or no proof in it.
    """
    return _inspect_folder(Path(subject)) if Path(subject).is_dir() else _inspect_image(subject)


def _inspect_folder(folder: Path) -> Inspection:
    if not (folder / "receipts").is_dir() and (folder / "proof").is_dir():
        folder = folder / "proof"  # beside an exported wheel
    documents = (path for pattern in ("*.json", "receipts/*.json") for path in folder.glob(pattern) if path.is_file())
    proof = {path.relative_to(folder).as_posix(): path.read_bytes() for path in documents}
    _must_have_receipts(proof, str(folder))
    return _inspection(str(folder), "", "", None, proof, [], ["a directory has no labels"])


def _inspect_image(name: str) -> Inspection:
    try:
        import docker  # noqa: PLC0415 - an extra
        from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415 - the same
    except ModuleNotFoundError:
        raise ImageError("looking into an image takes the docker package", help=install("images")) from None
    try:
        client = docker.from_env(environment=_environment())
    except DockerException as error:
        raise ImageError("no docker engine responds", help=engine.remedy("")) from error
    try:
        image = client.images.get(name)
        container = client.containers.create(image, command=["-"], network_disabled=True)
    except ImageNotFound:
        raise ImageError(f"the engine has no image {name!r}", help="`docker pull` it, or build it") from None
    except DockerException as error:
        raise ImageError(f"the engine refuses: {error}", help="is the engine healthy?") from error
    else:
        try:
            proof = _files(container, PROOF)
            _must_have_receipts(proof, name)
            files, notes = _trees(container, provenance.files_of(provenance.receipts_of(proof)))
        finally:
            container.remove()
        return _inspection(
            name, str(image.id), str(image.attrs.get("Architecture", "")), image.labels, proof, files, notes
        )
    finally:
        client.close()


def _environment() -> dict[str, str]:
    """Ours, with the engine of the docker context in use: the package knows nothing of contexts."""
    host = engine.host()
    return os.environ | ({"DOCKER_HOST": host} if host else {})


def _must_have_receipts(proof: Mapping[str, bytes], where: str) -> None:
    if not provenance.receipts_of(proof):
        raise ImageError(
            f"{where} holds no proof of fp4patch's ({PROOF}/receipts)",
            help="images of stage proof and later have one, and so have directories made by --target proof --output",
        )


def _inspection(
    subject: str,
    image: str,
    architecture: str,
    labels: Mapping[str, str] | None,
    proof: Mapping[str, bytes],
    files: list[Finding],
    notes: list[str],
) -> Inspection:
    findings = [*provenance.recheck(proof, labels), *files]
    if "binaries.json" not in proof:
        notes = [*notes, "no binaries.json: vLLM itself was not built here, so no built file was looked at"]
    return Inspection(
        subject=subject,
        image=image,
        architecture=architecture,
        labels=dict(labels or {}),
        pins=provenance.pins_of(proof),
        receipt=provenance.receipt_digest(provenance.receipts_of(proof)),
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _files(container: Container, folder: str) -> dict[str, bytes]:
    """Return every file below a directory of the container, by its relative name; none if it is missing."""
    from docker.errors import NotFound  # noqa: PLC0415 - an extra

    try:
        stream, _ = container.get_archive(folder)
    except NotFound:
        return {}
    packed, found = io.BytesIO(), {}
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
                found[member.name.partition("/")[2] or member.name] = content.read()
    return found


def _trees(container: Container, expected: Mapping[str, str]) -> tuple[list[Finding], list[str]]:
    """Return the patched files themselves against the receipts, where the image still has the trees."""
    targets = sorted({path.partition("/")[0] for path in expected})
    findings, notes = [], []
    for target in targets:
        names = [path for path in expected if path.startswith(f"{target}/")]
        got = {path: _files(container, f"{SOURCES}/{path}") for path in names}
        if names and not any(got.values()):
            notes.append(f"no {SOURCES}/{target}: the patched files of {target} are not in this image")
            continue
        wrong = [path for path in names if hashlib.sha256(b"".join(got[path].values())).hexdigest() != expected[path]]
        detail = (
            f"{len(names)} files as the receipt states"
            if not wrong
            else f"not as the receipt states: {', '.join(wrong)}"
        )
        findings.append(Finding(f"files of {target}", verdict_on(not wrong), detail))
    return findings, notes
