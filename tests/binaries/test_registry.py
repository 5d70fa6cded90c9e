"""Images in a real registry on loopback: Debian's docker-registry."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from cubins import CONVERTS, compile_cuda, tar_of, targets

from fp4patch import cli
from fp4patch.binaries import registry, scan
from fp4patch.core.errors import BinaryError, UsageError
from fp4patch.proof.toolchain import Toolchain

INDEX, MANIFEST = "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture
def host(registry: str) -> str:
    return registry


@pytest.fixture
def library(toolchain: Toolchain, tmp_path: Path) -> Callable[[str], bytes]:
    return lambda name: compile_cuda(toolchain, CONVERTS, tmp_path / f"{name}.o", "-c", *targets(name)).read_bytes()


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


def image(host: str, reference: str, platform: str, *layers: dict[str, bytes]) -> dict[str, Any]:
    os, architecture = platform.split("/")
    config = blob(host, json.dumps({"os": os, "architecture": architecture, "rootfs": {}}).encode())
    stored = [blob(host, gzip.compress(tar_of(files), mtime=0)) for files in layers]
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
    assert {answer.answer for answer in found.answers} == {"reservation"}
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
    assert [answer.answer for answer in found.answers] == ["reservation", "no"]
    assert found.source == f"{name} (not read: linux/s390x)"
    assert not found.unread
    assert cli.run(["doctor", "--for", "sm_120", name]) == 0
    assert "not read: linux/arm64, linux/s390x" in " ".join(capsys.readouterr().out.split())


def test_a_layer_that_is_not_what_its_digest_says_is_refused(
    host: str, library: Callable[[str], bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    native = library("120f")
    image(host, "bad", "linux/amd64", {"x.so": native, "unique": b"17"})
    layer = gzip.compress(tar_of({"x.so": native, "unique": b"17"}), mtime=0)
    stored = next(tmp_path_factory.getbasetemp().glob(f"registry*/data/**/{digest(layer)[7:]}/data"))
    stored.write_bytes(layer[:-1] + bytes([layer[-1] ^ 1]))
    with pytest.raises(BinaryError, match="does not have its digest"):
        scan.examine_image(f"docker://{host}/app:bad")


@pytest.mark.parametrize("name", ["app:none", "none:one"])
def test_what_is_not_in_the_registry_is_a_usage_error(host: str, name: str) -> None:
    with pytest.raises(UsageError, match="has no image"):
        scan.examine_image(f"docker://{host}/{name}")
    assert cli.run(["doctor", f"docker://{host}/{name}"]) == 2


@pytest.mark.parametrize("name", ["docker://", "docker://two words", "docker://127.0.0.1:1/app"])
def test_a_name_that_leads_nowhere_is_a_usage_error(name: str) -> None:
    assert cli.run(["doctor", name]) == 2


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
        registry.read(f"docker://{name}", [])
    assert [url.partition("://")[2] for url in asked] == [f"{place}/manifests/v1"]
