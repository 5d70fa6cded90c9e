"""Reads a container image in a registry: its manifests, and the layers for the platforms that count, as streams.

Nothing is written to disk, and no engine is needed. Manifests and layers are compared with their digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from fp4patch.binaries.containers import Member
from fp4patch.binaries.image import Image
from fp4patch.core.errors import BinaryError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from oras.provider import Registry

SCHEME = "docker://"
# Example: registry.example:5000/team/vllm:v1
_REFERENCE = re.compile(
    r"(?P<host>[\w.-]+(:\d+)?)/(?P<name>[\w./-]+?)(:(?P<tag>[\w.-]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_HOST = re.compile(r"(localhost|[^/]*[.:][^/]*)/")
# Example: 127.0.0.1:5000
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
_LOGIN = "log in: docker login"


def read(reference: str, platforms: Sequence[str]) -> tuple[list[Image], Iterator[Member], tuple[str, ...]]:
    """Return the images of that name, each for a platform, their layers, and the platforms that are left out.

    ``reference`` is ``docker://host/name:tag``. Of an image for several platforms the layers for ``platforms`` are
    read; those of all platforms, if it has none of them. Raises UsageError where there is no such image.
    """
    client, repository, tag = _repository(reference)
    first = _manifest(client, repository, tag, reference)
    # What a builder attests of an image is listed beside it, for an unknown platform.
    listed = [image for image in first.get("manifests", ()) if _platform(image) != "unknown/unknown"]
    wanted = [image for image in listed if _platform(image) in platforms] or listed
    found = [(_platform(image), _manifest(client, repository, image["digest"], reference)) for image in wanted]
    found = found or [("", first)]
    images = [Image(name, tuple(layer["digest"] for layer in manifest["layers"])) for name, manifest in found]
    sizes = {layer["digest"]: layer["size"] for _, manifest in found for layer in manifest["layers"]}
    left_out = tuple(_platform(image) for image in listed if image not in wanted)
    return images, _layers(client, repository, sizes), left_out


def _repository(reference: str) -> tuple[Registry, str, str]:
    """Return a client, the address of an image's repository, and the image's tag or digest."""
    from oras.provider import Registry  # noqa: PLC0415 - few commands need a client

    name = reference.removeprefix(SCHEME)
    if name and not _HOST.match(name):  # as docker reads a name
        name = f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"
    parts = _REFERENCE.fullmatch(name)
    if parts is None:
        raise UsageError(
            f"{reference!r} is not the name of an image", help=f"for example {SCHEME}registry.example/owner/name:tag"
        )
    host = parts["host"]
    client = Registry(hostname=host, insecure=bool(_LOOPBACK.fullmatch(host)))
    client.auth.load_configs(client.get_container(f"{host}/{parts['name']}"))
    server = "registry-1.docker.io" if host == "docker.io" else host
    return client, f"{client.prefix}://{server}/v2/{parts['name']}", parts["digest"] or parts["tag"] or "latest"


def _layers(client: Registry, repository: str, sizes: Mapping[str, int]) -> Iterator[Member]:
    for digest, size in sizes.items():
        with _asked(client, f"{repository}/blobs/{digest}", {}) as response:
            if response.status_code != 200:
                why = f"the registry does not return {digest}: {response.status_code}"
                raise BinaryError(why, help="push the image again")
            stream = _Checked(response.raw, digest)
            yield Member(digest, size, stream)
            while stream.read(1 << 20):
                pass


def _platform(descriptor: Any) -> str:
    """Return ``linux/arm64``, as an index states it; empty where it does not."""
    stated = descriptor.get("platform") or {}
    parts = (stated.get("os"), stated.get("architecture"))
    return "/".join(map(str, parts)) if all(parts) else ""


def _manifest(client: Registry, repository: str, reference: str, name: str) -> Any:
    with _asked(client, f"{repository}/manifests/{reference}", {"Accept": _MANIFESTS}) as response:
        if response.status_code == 404:
            raise UsageError(f"the registry has no image {name}", help="check its name and tag")
        if response.status_code != 200:
            raise UsageError(f"the registry refuses {name}: {response.status_code} {response.reason}", help=_LOGIN)
        content = bytes(response.raw.read(_MOST_MANIFEST, decode_content=True))
    if reference.startswith("sha256:") and f"sha256:{hashlib.sha256(content).hexdigest()}" != reference:
        raise BinaryError(f"the manifest of {name} does not have its digest", help="do not use this image")
    return json.loads(content)


def _asked(client: Registry, url: str, headers: dict[str, str]) -> Any:
    import requests  # noqa: PLC0415

    from fp4patch.sources.index import cause_of  # noqa: PLC0415

    try:
        # Not by the client's own request, which sleeps for a minute before a name that leads nowhere is an error.
        response = client.session.get(url, headers=headers | client.auth.get_auth_header(), stream=True)
        if response.status_code in (401, 403):
            headers, may_enter = client.auth.authenticate_request(response, headers)
            if not may_enter:
                raise ValueError("it asks for a login of a kind that is not known")
            response = client.session.get(url, headers=headers, stream=True)
        return response
    except (requests.RequestException, ValueError) as error:
        raise UsageError(
            f"{url} does not respond: {cause_of(error)}", help=f"check the name and the network, or {_LOGIN}"
        ) from error


class _Checked:
    """A blob as it comes; BinaryError where it is cut off, and at its end if it does not have its digest."""

    def __init__(self, stream: Any, digest: str) -> None:
        self._stream = stream
        self._digest = digest
        self._hash = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """As a file's."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            piece = bytes(self._stream.read(size if size >= 0 else None))
        except HTTPError as error:
            raise BinaryError(f"{self._digest} was cut off: {error}", help="try again") from error
        self._hash.update(piece)
        if not piece and f"sha256:{self._hash.hexdigest()}" != self._digest:
            raise BinaryError(f"a layer does not have its digest {self._digest}", help="do not use this image")
        return piece
