"""Reads a container image in a registry: its manifests, and the layers for the platforms that count, as streams.

Nothing is written to disk, and no engine is needed. Manifests and layers are compared with their digests. Of a layer
with a table of contents, the table and the files that can hold code are read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

from fp4patch.binaries import indexed_layers
from fp4patch.binaries.containers import IndexedLayer, Member, is_attestation, platform_of
from fp4patch.core.errors import BinaryError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oras.provider import Registry

SCHEME = "docker://"
_REFERENCE = re.compile(
    r"(?P<host>[\w.-]+(:\d+)?)/(?P<name>[\w./-]+?)(:(?P<tag>[\w.-]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_HOST = re.compile(r"(localhost|[^/]*[.:][^/]*)/")
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+|\[::1\])(:\d+)?")
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_MOST_MANIFEST = 1 << 22
"""Bytes that registries accept for one manifest."""


def members(reference: str, platforms: Sequence[str]) -> tuple[Iterator[Member], tuple[str, ...]]:
    """Return the files of an image as those of an OCI layout would come, and the platforms that are left out.

    ``reference`` is ``docker://host/name:tag``. Of an image for several platforms the layers for ``platforms`` are
    read; those of all platforms, if it has none of them. Raises UsageError where there is no such image.
    """
    from oras.provider import Registry  # noqa: PLC0415 - few commands need a client

    name = reference.removeprefix(SCHEME)
    if name and not _HOST.match(name):  # as docker reads a name
        name = f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"
    found = _REFERENCE.fullmatch(name)
    if found is None:
        raise UsageError(
            f"{reference!r} is not the name of an image", help=f"for example {SCHEME}registry.example/owner/name:tag"
        )
    host = found["host"]
    client = Registry(hostname=host, insecure=bool(_LOOPBACK.fullmatch(host)))
    client.auth.load_configs(client.get_container(f"{host}/{found['name']}"))
    base = f"{client.prefix}://{'registry-1.docker.io' if host == 'docker.io' else host}/v2/{found['name']}"
    first = _manifest(client, base, found["digest"] or found["tag"] or "latest", reference)
    documents = [first]
    listed = json.loads(first).get("manifests")
    left_out: list[str] = []
    if listed is not None:
        images = [one for one in listed if not is_attestation(one)]
        wanted = [one for one in images if platform_of(one.get("platform") or {}) in platforms] or images
        left_out = [platform_of(one.get("platform") or {}) for one in images if one not in wanted]
        documents = [_manifest(client, base, one["digest"], reference) for one in wanted]
        index = [{**one, "annotations": {}} for one in wanted]
    else:
        index = [{"digest": _digest(first)}]
    return _members(client, base, index, documents), tuple(left_out)


def _members(client: Registry, base: str, index: Sequence[Any], documents: Sequence[bytes]) -> Iterator[Member]:
    named = {"index.json": json.dumps({"manifests": list(index)}).encode()}
    named |= {_place(_digest(document)): document for document in documents}
    for name, content in named.items():
        yield Member(name, len(content), cast("IO[bytes]", io.BytesIO(content)))
    blobs = {}
    for document in map(json.loads, documents):
        for blob in [document["config"], *document["layers"]]:
            blobs[blob["digest"]] = blob
    for digest, blob in blobs.items():
        place, size, url = _place(digest), blob["size"], f"{base}/blobs/{digest}"
        notes = blob.get("annotations") or {}
        if indexed_layers.has_table(notes) and _serves_ranges(client, url):
            layer = indexed_layers.Layer(f"layer {digest}", size, notes, partial(_range, client, url))
            nothing = cast("IO[bytes]", io.BytesIO())
            yield IndexedLayer(place, size, nothing, members=indexed_layers.members(layer))
            continue
        with _blob(client, url, digest) as stream:
            yield Member(place, size, stream)


def _serves_ranges(client: Registry, url: str) -> bool:
    with _asked(client, url, {"Range": "bytes=0-0"}) as response:
        return bool(response.status_code == 206)


@contextmanager
def _range(client: Registry, url: str, begin: int, end: int) -> Iterator[_Raw]:
    with _asked(client, url, {"Range": f"bytes={begin}-{end - 1}", "Accept-Encoding": "identity"}) as response:
        if response.status_code != 206:
            raise BinaryError(f"the registry does not return a part of {url}: {response.status_code}", help="try again")
        yield _Raw(response.raw, url)


def _place(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _manifest(client: Registry, base: str, reference: str, name: str) -> bytes:
    response = _asked(client, f"{base}/manifests/{reference}", {"Accept": _MANIFESTS})
    with response:
        if response.status_code == 404:
            raise UsageError(f"the registry has no image {name}", help="check its name and tag")
        if response.status_code != 200:
            raise UsageError(f"the registry refuses {name}: {response.status_code} {response.reason}", help=_LOGIN)
        content = bytes(response.raw.read(_MOST_MANIFEST, decode_content=True))
    if reference.startswith("sha256:") and _digest(content) != reference:
        raise BinaryError(f"the manifest of {name} does not have its digest", help="do not use this image")
    return content


_LOGIN = "log in: docker login"


def _asked(client: Registry, url: str, headers: dict[str, str]) -> Any:
    import requests  # noqa: PLC0415

    from fp4patch.sources.index import cause_of  # noqa: PLC0415

    try:
        # Without its retries, which sleep for a minute before a name that leads nowhere is an error.
        return type(client).do_request.__wrapped__(client, url, headers=headers, stream=True)
    except (requests.RequestException, ValueError) as error:
        raise UsageError(
            f"{url} does not respond: {cause_of(error)}", help=f"check the name and the network, or {_LOGIN}"
        ) from error


@contextmanager
def _blob(client: Registry, url: str, digest: str) -> Iterator[_Checked]:
    with _asked(client, url, {}) as response:
        if response.status_code != 200:
            raise BinaryError(
                f"the registry does not return {digest}: {response.status_code}", help="push the image again"
            )
        stream = _Checked(response.raw, digest)
        yield stream
        while stream.read(1 << 20):
            pass


class _Raw:
    """A response as it comes; BinaryError where it is cut off."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def read(self, size: int = -1, /) -> bytes:
        """As a file's."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return bytes(self._stream.read(size if size >= 0 else None))
        except HTTPError as error:
            raise BinaryError(f"{self._name} was cut off: {error}", help="try again") from error


class _Checked(_Raw):
    """A blob as it comes; BinaryError at its end if it does not have its digest."""

    def __init__(self, stream: Any, digest: str) -> None:
        super().__init__(stream, digest)
        self._expected, self._hash = digest, hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """As a file's."""
        piece = super().read(size)
        self._hash.update(piece)
        if not piece and f"sha256:{self._hash.hexdigest()}" != self._expected:
            raise BinaryError(f"a layer does not have its digest {self._expected}", help="do not use this image")
        return piece
