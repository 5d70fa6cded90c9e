"""The build context: this fp4patch as a wheel from wherever it runs, and the pins."""

import json
import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from outside import LINK, diff_of, outside

import fp4patch
from fp4patch.catalog.manifest import data_root, load
from fp4patch.catalog.variant import Pins
from fp4patch.core.errors import UsageError
from fp4patch.images import context
from fp4patch.images.plan import plan

ROOT = Path(fp4patch.__file__).parents[1]


def the_files() -> dict[str, bytes]:
    return context.files(plan("next3", ["12.1a"]), ["x86_64", "aarch64"])


def test_equal_inputs_give_equal_bytes() -> None:
    assert the_files() == the_files()


def test_the_context_holds_what_the_stages_read_and_nothing_of_this_machine() -> None:
    files = the_files()
    wheel = f"fp4patch-{fp4patch.__version__}-py3-none-any.whl"
    assert set(files) == {
        "Dockerfile",
        "fp4_objects.py",
        wheel,
        "constraints.txt",
        "torch.txt",
        "pins.json",
        "with/README",
    }
    assert files["constraints.txt"] == b"torch==2.14.0\n"
    pins = json.loads(files["pins.json"])
    assert (pins["variant"], pins["arch"], pins["judged"], pins["gpus"]) == (
        "next3",
        ["sm_121a"],
        ["sm_121a"],
        ["sm_121"],
    )
    assert len(pins["trees"]["vllm"]["sha256"]) == 64
    assert pins["trees"]["cutlass"]["commit"] == load().target("cutlass").commits["4.7.1"]
    for name in ("constraints.txt", "torch.txt", "pins.json"):
        assert str(ROOT) not in files[name].decode()


def the_pins(variant: str) -> Pins:
    pins = load().variant(variant).image
    assert pins is not None
    return pins


def test_torch_is_checked_by_hash_where_every_machine_has_one_pinned() -> None:
    torch = the_pins("next3").torch
    text = context.torch_requirement(torch, ["aarch64"])
    assert text.startswith("torch==2.14.0 ")
    assert text.count("--hash=sha256:") == len(torch.wheels) >= 8
    cu130 = the_pins("turbo").torch
    assert "--hash" in context.torch_requirement(cu130, ["x86_64"])
    assert context.torch_requirement(cu130, ["aarch64"]) == "torch==2.10.0+cu130\n"


def test_every_variant_with_an_image_pins_a_torch_whose_version_no_cpu_build_has() -> None:
    """The general index has torch 2.10.0 for arm64 without CUDA; 2.11 and later are for CUDA 13 on both machines."""
    for variant in load().variants.values():
        if variant.image:
            version = variant.image.torch.version
            assert version.endswith("+cu130") or int(version.split(".")[1]) >= 11, variant.name


def test_the_wheel_is_one_that_pip_installs_and_that_makes_a_wheel_with_the_same_files(tmp_path: Path) -> None:
    """Installed away from the checkout."""
    installed = tmp_path / "site"
    name, data = context.wheel(data_root())
    (tmp_path / name).write_bytes(data)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", f"--target={installed}"]
    subprocess.run([*install, str(tmp_path / name)], check=True, capture_output=True)
    code = (
        "import fp4patch, sys; from fp4patch.catalog.manifest import data_root, load; "
        "from fp4patch.images.context import wheel; print(fp4patch.__file__, *load().variants, file=sys.stderr); "
        "sys.stdout.buffer.write(wheel(data_root())[1])"
    )
    command = [sys.executable, "-c", code]
    environ = os.environ | {"PYTHONPATH": str(installed)}
    run = subprocess.run(command, capture_output=True, check=True, env=environ, cwd=tmp_path)
    where, *names = run.stderr.decode().split()
    assert Path(where).is_relative_to(installed)
    assert names == list(load().variants)
    contents = []
    for made in (run.stdout, data):
        with zipfile.ZipFile(BytesIO(made)) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    assert contents[0] == contents[1]


def test_a_pull_request_travels_in_the_context_with_its_address(tmp_path: Path) -> None:
    tree = tmp_path / "vllm"
    tree.mkdir()
    (tree / "setup.py").write_text("one\n")
    folder = outside(tmp_path / "pr-1", "vllm", diff_of(tree, {"setup.py": "two\n"}))
    request = plan("next3", ["12.1a"], outside=[folder])
    assert request.patches[-len(load().patches_of(load().variant("next3"), "vllm")) - 1] == "vllm/pr-1 1"
    files = context.files(request, ["aarch64"])
    assert json.loads(files["pins.json"])["diffs"]["vllm/pr-1"]["link"] == LINK
    for name in ("patch.toml", "pr.diff"):
        assert files[f"with/pr-1/{name}"] == (folder / name).read_bytes()
    with pytest.raises(UsageError, match="none of the trees"):
        plan("next3", ["12.1a"], outside=[outside(tmp_path / "pr-2", "mlx", request.outside[0].diff.decode())])
