"""Labels and proof of an image, or of a directory that a build wrote: read without running anything, checked again."""

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fp4patch.core.errors import ImageError
from fp4patch.core.wording import install
from fp4patch.images import engine, provenance
from fp4patch.images.image import PROOF, ProofReport


def of_directory(folder: Path) -> ProofReport | None:
    """Check the proof in a directory that ``fp4patch build --output`` wrote; None if there is none.

    ImageError: a document in it is damaged.
    """
    for place in (folder, folder / "proof"):  # the latter beside an exported wheel
        documents = (path for pattern in ("*.json", "receipts/*.json", provenance.SUMS) for path in place.glob(pattern))
        proof = {path.relative_to(place).as_posix(): path.read_bytes() for path in documents if path.is_file()}
        if provenance.receipts_of(proof) and {"pins.json", "verify.json"} & set(proof):
            return _checked(str(folder), "", {}, proof)
    return None


def of_image(name: str) -> ProofReport | None:
    """Check the labels and the proof of an image in the container engine; None if it has neither, or is not there.

    Without access to the engine the report has no statement, and a note with the reason. ImageError: a document of the
    proof is damaged.
    """
    try:
        import docker  # noqa: PLC0415 - an extra
        from docker.errors import DockerException, ImageNotFound, NotFound  # noqa: PLC0415 - the same
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
            proof = _unpacked(b"".join(container.get_archive(PROOF)[0]))
        except NotFound:
            proof = {}
        finally:
            container.remove()
        labels = {key: value for key, value in image.labels.items() if key.startswith(provenance.OURS)}
        return _checked(name, str(image.id), labels, proof) if labels or provenance.receipts_of(proof) else None
    except ImageNotFound:
        return None
    except DockerException as error:
        raise ImageError(f"the engine refuses: {error}", help="is the engine healthy?") from error
    finally:
        client.close()


def _unread(name: str, why: str) -> ProofReport:
    return ProofReport(name, "", {}, {}, (), (f"labels and proof were not read: {why}",))


def _checked(subject: str, image: str, labels: Mapping[str, str], proof: Mapping[str, bytes]) -> ProofReport:
    statements = tuple(provenance.recheck(proof, labels or None))
    notes = [] if labels else [f"there are no labels {provenance.OURS}*"]
    if "binaries.json" not in proof:
        notes.append("no binaries.json: vLLM itself was not built here, so no built file was looked at")
    return ProofReport(subject, image, labels, provenance.pins_of(proof), statements, tuple(notes))


def _unpacked(archive: bytes) -> dict[str, bytes]:
    """Return every file of the proof by its relative name."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content: Any = tar.extractfile(member) if member.isfile() else None
            if content:
                files[member.name.partition("/")[2]] = content.read()
    return files
