"""Images in a real registry on loopback: Debian's docker-registry."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import zstandard
from cubins import CONVERTS, compile_cuda, tar_of, targets

from fp4patch.binaries import registry, scan
from fp4patch.binaries.report import Fp4State
from fp4patch.commands import main
from fp4patch.core.errors import BinaryError, UsageError
from fp4patch.proof.toolchain import Toolchain

INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"
Push = Callable[..., dict[str, Any]]


@pytest.fixture
def host(registry: str) -> str:
    return registry


@pytest.fixture
def library(toolchain: Toolchain, tmp_path: Path) -> Callable[[str], bytes]:
    return lambda name: compile_cuda(toolchain, CONVERTS, tmp_path / f"{name}.o", "-c", *targets(name)).read_bytes()


@dataclass(frozen=True)
class Layer:
    content: bytes
    annotations: dict[str, str]
    offsets: dict[str, int] = field(default_factory=dict)
    """Offset at which each file of it begins, compressed."""


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def blob(host: str, content: bytes) -> dict[str, Any]:
    begun = requests.post(f"http://{host}/v2/app/blobs/uploads/", timeout=30)
    url = f"{begun.headers['Location']}&digest={digest(content)}"
    requests.put(url, data=content, headers={"Content-Type": "application/octet-stream"}, timeout=30).raise_for_status()
    return {"mediaType": "application/octet-stream", "digest": digest(content), "size": len(content)}


def put(host: str, reference: str, document: dict[str, Any], kind: str) -> dict[str, Any]:
    content = json.dumps({"schemaVersion": 2, "mediaType": kind, **document}).encode()
    url = f"http://{host}/v2/app/manifests/{reference or digest(content)}"
    requests.put(url, data=content, headers={"Content-Type": kind}, timeout=30).raise_for_status()
    return {"mediaType": kind, "digest": digest(content), "size": len(content)}


def image(host: str, reference: str, platform: str, *layers: dict[str, bytes] | Layer) -> dict[str, Any]:
    os, architecture = platform.split("/")
    config = blob(host, json.dumps({"os": os, "architecture": architecture, "rootfs": {}}).encode())
    every = [one if isinstance(one, Layer) else Layer(gzip.compress(tar_of(one), mtime=0), {}) for one in layers]
    stored = [blob(host, layer.content) | {"annotations": layer.annotations} for layer in every]
    found = put(host, reference, {"config": config, "layers": stored}, MANIFEST)
    return found | {"platform": {"os": os, "architecture": architecture}}


def test_an_image_is_read_without_an_engine_and_a_whiteout_hides_a_file(
    host: str, library: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    native, lost = library("120f"), library("120a")
    image(host, "one", "linux/amd64", {"a/x.so": lost, "b.so": native}, {"a/.wh.x.so": b""})
    found = scan.examine_image(f"docker://{host}/app:one")
    assert [file.name for file in found.files] == ["b.so"]
    assert {verdict.state for verdict in found.verdicts} == {Fp4State.NATIVE}
    assert not found.unread


def test_each_gpu_is_judged_by_its_own_platform_and_the_others_are_not_transferred(
    host: str, library: Callable[[str], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [
        image(host, "", "linux/amd64", {"x.so": library("120f")}),
        image(host, "", "linux/arm64", {"x.so": library("120a")}),
        image(host, "", "linux/s390x", {"x.so": b"\x7fELF not whole"}),
    ]
    attests = image(host, "", "unknown/unknown", {"x.json": b"{}"})
    attests["annotations"] = {"vnd.docker.reference.type": "attestation-manifest"}
    put(host, "many", {"manifests": [*listed, attests]}, INDEX)
    name = f"docker://{host}/app:many"
    found = scan.examine_image(name)
    assert [verdict.state for verdict in found.verdicts] == [Fp4State.NATIVE, Fp4State.MISSING]
    assert found.source == f"{name} (not read: linux/s390x)"
    assert not found.unread
    assert main.run(["doctor", "--for", "sm_120", name]) == 0
    assert "not read: linux/arm64, linux/s390x" in " ".join(capsys.readouterr().out.split())


def test_a_layer_that_is_not_what_its_digest_says_is_red(
    host: str, library: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    native = library("120f")
    image(host, "bad", "linux/amd64", {"x.so": native, "unique": b"17"})
    layer = gzip.compress(tar_of({"x.so": native, "unique": b"17"}), mtime=0)
    stored = next(tmp_path_factory.getbasetemp().glob(f"registry*/data/**/{digest(layer)[7:]}/data"))
    stored.write_bytes(layer[:-1] + bytes([layer[-1] ^ 1]))
    found = scan.examine_image(f"docker://{host}/app:bad")
    assert found.red
    assert any("digest" in one.because or "damaged" in one.because for one in found.unread)


@pytest.mark.parametrize("name", ["app:none", "none:one"])
def test_what_is_not_in_the_registry_is_a_usage_error(host: str, name: str) -> None:
    with pytest.raises(UsageError, match="has no image"):
        scan.examine_image(f"docker://{host}/{name}")
    assert main.run(["doctor", f"docker://{host}/{name}"]) == 2


@pytest.mark.parametrize("name", ["docker://", "docker://two words", "docker://127.0.0.1:1/app"])
def test_a_name_that_leads_nowhere_is_a_usage_error(name: str) -> None:
    assert main.run(["doctor", name]) == 2


# --- layers with a table of contents ---------------------------------------------------------------------------------


def table(files: dict[str, bytes], chunk: int, pack: Callable[[bytes], bytes]) -> tuple[bytes, bytes, dict[str, int]]:
    """Return the compressed files, one member or frame for each header and chunk, their table, and their offsets."""
    packed, entries, offsets = b"", list[dict[str, Any]](), dict[str, int]()
    for name, content in files.items():
        archive = tar_of({name: content})
        packed += pack(archive[:512])
        offsets[name] = len(packed)
        for at in range(0, len(content) or 1, chunk):
            part = content[at : at + chunk]
            entry: dict[str, Any] = {"name": name, "type": "chunk" if at else "reg", "offset": len(packed)}
            entry |= {"chunkOffset": at, "chunkSize": len(part), "chunkDigest": digest(part)} if part else {}
            if not at:
                entry |= {"size": len(content), "digest": digest(content)}
            entries.append(entry)
            packed += pack(part)
        packed += pack(bytes(-len(content) % 512))
    return packed, json.dumps({"version": 1, "entries": entries}).encode(), offsets


def estargz(files: dict[str, bytes], chunk: int = 1 << 16) -> Layer:
    """As docs/estargz.md of containerd's stargz-snapshotter describes it."""
    packed, entries, offsets = table(files, chunk, lambda content: gzip.compress(content, mtime=0))
    extra = b"SG" + struct.pack("<H", 22) + f"{len(packed):016x}STARGZ".encode()
    packed += gzip.compress(tar_of({"stargz.index.json": entries}) + bytes(1024), mtime=0)
    footer = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", len(extra)) + extra
    footer += b"\x01\x00\x00\xff\xff" + bytes(8)
    assert len(footer) == 51
    return Layer(packed + footer, {"containerd.io/snapshot/stargz/toc.digest": digest(entries)}, offsets)


def zstd_chunked(files: dict[str, bytes], chunk: int = 1 << 16) -> Layer:
    """As ManifestInfoKey in containers/storage describes it; without the footer, which no reader uses."""
    packed, entries, offsets = table(files, chunk, zstandard.ZstdCompressor().compress)
    manifest = zstandard.ZstdCompressor().compress(entries)
    position = f"{len(packed) + 8}:{len(manifest)}:{len(entries)}:1"
    notes = {"manifest-position": position, "manifest-checksum": digest(manifest)}
    packed += struct.pack("<II", 0x184D2A50, len(manifest)) + manifest
    return Layer(packed, {f"io.github.containers.zstd-chunked.{name}": note for name, note in notes.items()}, offsets)


FORMATS = pytest.mark.parametrize("make", [estargz, zstd_chunked])
TEXT = random.Random(1).randbytes(3 << 20)


def stored(layer: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the registry's own file of a layer."""
    return next(tmp_path_factory.getbasetemp().glob(f"registry*/data/**/{digest(layer)[7:]}/data"))


def damage(layer: bytes, at: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Change a byte in the registry's copy of a layer."""
    stored(layer, tmp_path_factory).write_bytes(layer[:at] + bytes([layer[at] ^ 0x55]) + layer[at + 1 :])


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("vllm/vllm-openai:v1", "registry-1.docker.io/v2/vllm/vllm-openai"),
        ("ubuntu:v1", "registry-1.docker.io/v2/library/ubuntu"),
        ("localhost/app:v1", "localhost/v2/app"),
        ("registry.example/owner/app:v1", "registry.example/v2/owner/app"),
    ],
)
def test_a_name_without_a_host_is_one_of_docker_hub(monkeypatch: pytest.MonkeyPatch, name: str, place: str) -> None:
    asked: list[str] = []

    def refuse(_client: object, url: str, _headers: object) -> None:
        asked.append(url)
        raise UsageError("not in this test")

    monkeypatch.setattr(registry, "_asked", refuse)
    with pytest.raises(UsageError, match="not in this test"):
        registry.members(f"docker://{name}", [])
    assert [url.partition("://")[2] for url in asked] == [f"{place}/manifests/v1"]


@FORMATS
def test_a_layer_with_a_table_of_contents_is_the_same_as_one_without(
    host: str, library: Callable[[str], bytes], make: Callable[..., Layer]
) -> None:
    native, lost = library("120f"), library("120a")
    lower = {"a/x.so": lost, "a.py": TEXT, "b.so": native, "empty": b"", "gone/y.so": lost}
    upper = {"a/.wh.x.so": b"", ".wh.gone": b"", "c.so": native}
    plain = image(host, "plain", "linux/amd64", lower, upper)
    for chunk in (1 << 22, 1000):
        indexed = image(host, f"indexed-{chunk}", "linux/amd64", make(lower, chunk), make(upper, chunk))
        assert indexed["digest"] != plain["digest"]
        found = scan.examine_image(f"docker://{host}/app:indexed-{chunk}")
        expected = scan.examine_image(f"docker://{host}/app:plain")
        assert (found.files, found.verdicts, found.unread) == (expected.files, expected.verdicts, ())
        assert [file.name for file in found.files] == ["b.so", "c.so"]


@FORMATS
def test_only_files_that_can_hold_code_are_transferred(
    host: str,
    library: Callable[[str], bytes],
    make: Callable[..., Layer],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A text is damaged in the registry, where its layer as a whole would not have its digest any more."""
    layer = make({"a.so": library("120f"), "a.py": TEXT, "b.so": library("121a")}, 1 << 22)
    image(host, "ranges", "linux/amd64", layer)
    name = f"docker://{host}/app:ranges"
    sent = []
    answer = registry._asked

    def counting(*arguments: Any) -> Any:
        response = answer(*arguments)
        sent.append(int(response.headers["Content-Length"]))
        return response

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "_asked", counting)
        found = scan.examine_image(name)
    assert [file.name for file in found.files] == ["a.so", "b.so"]
    assert sum(sent) < len(layer.content) - len(TEXT) + 10_000
    damage(layer.content, layer.offsets["a.py"] + (1 << 20), tmp_path_factory)
    again = scan.examine_image(name)
    assert (again.files, again.unread) == (found.files, ())
    layer_without = Layer(layer.content, {})
    image(host, "whole", "linux/amd64", layer_without)
    damage(layer.content, layer.offsets["a.py"] + (1 << 20), tmp_path_factory)
    assert scan.examine_image(f"docker://{host}/app:whole").red


@FORMATS
@pytest.mark.parametrize("part", ["file", "table"])
def test_a_file_or_a_table_that_does_not_have_its_digest_is_red(
    host: str,
    library: Callable[[str], bytes],
    make: Callable[..., Layer],
    part: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    layer = make({"file.so": library("120f"), "b.so": library("121a")})
    image(host, "damaged", "linux/amd64", layer)
    end = len(layer.content) - (51 if make is estargz else 0)
    damage(layer.content, layer.offsets["file.so"] + 200 if part == "file" else end - 40, tmp_path_factory)
    name = f"docker://{host}/app:damaged"
    if part == "table":
        with pytest.raises(BinaryError, match=r"digest|damaged"):
            scan.examine_image(name)
        return
    found = scan.examine_image(name)
    (unread,) = found.unread
    assert found.red
    assert unread.name == "file.so"
    assert "digest" in unread.because or "damaged" in unread.because
    assert [file.name for file in found.files] == ["b.so"]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table["entries"][0].update(offset=1 << 40),
        lambda table: table["entries"][0].update(chunkSize=1 << 40),
        lambda table: table["entries"][0].update(size=-1, chunkSize=-1),
        lambda table: table["entries"].insert(0, {"name": "x", "type": "chunk", "offset": 5}),
        lambda table: table.update(entries=7),
    ],
)
def test_a_table_that_leads_outside_of_its_layer_is_red(
    host: str, library: Callable[[str], bytes], change: Callable[[dict[str, Any]], None]
) -> None:
    packed, text, _ = table({"a.so": library("120f")}, 1 << 20, lambda content: gzip.compress(content, mtime=0))
    changed = json.loads(text)
    change(changed)
    manifest = zstandard.ZstdCompressor().compress(json.dumps(changed).encode())
    position = f"{len(packed)}:{len(manifest)}:{1 << 20}:1"
    notes = {"manifest-position": position, "manifest-checksum": digest(manifest)}
    layer = Layer(packed + manifest, {f"io.github.containers.zstd-chunked.{key}": note for key, note in notes.items()})
    image(host, "outside", "linux/amd64", layer)
    with pytest.raises(BinaryError, match="table of contents is damaged"):
        scan.examine_image(f"docker://{host}/app:outside")
