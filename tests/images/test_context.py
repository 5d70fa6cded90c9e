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
from fp4patch.images import context, provenance
from fp4patch.images.plan import plan
from fp4patch.stack.read import contents, named, read_stack

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
    request = plan("next3", ["12.1a"], outside=named([folder], load().targets), with_files=contents([folder]))
    assert request.patches[-len(load().patches_of(load().variant("next3"), "vllm")) - 1] == "vllm/pr-1 1"
    files = context.files(request, ["aarch64"])
    assert json.loads(files["pins.json"])["diffs"]["vllm/pr-1"]["link"] == LINK
    for name in ("patch.toml", "pr.diff"):
        assert files[f"with/pr-1/{name}"] == (folder / name).read_bytes()
    other = outside(tmp_path / "pr-2", "mlx", request.outside[0].diff.decode())
    with pytest.raises(UsageError, match="none of the trees"):
        plan("next3", ["12.1a"], outside=named([other], load().targets))


def test_a_stack_travels_whole_and_the_pins_and_labels_have_its_hash(tmp_path: Path) -> None:
    tree, folder = tmp_path / "vllm", tmp_path / "carried"
    tree.mkdir()
    folder.mkdir()
    (tree / "setup.py").write_text("one\n")
    (folder / "series").write_text("b.patch\na.patch -p1\n")
    (folder / "a.patch").write_text(diff_of(tree, {"setup.py": "two\n"}))
    (folder / "b.patch").write_text("diff --git a/new.py b/new.py\nnew file mode 100644\n")
    (folder / "secret.txt").write_text("not of the stack\n")
    with pytest.raises(UsageError, match="carried for"):
        plan("next3", ["12.1a"], outside=named([folder], load().targets), with_files=contents([folder]))
    (folder / "stack.toml").write_text('target = "vllm"\n')
    request = plan("next3", ["12.1a"], outside=named([folder], load().targets), with_files=contents([folder]))
    files = context.files(request, ["aarch64"])
    there = {name for name in files if name.startswith("with/carried/")}
    assert there == {f"with/carried/{name}" for name in ("series", "a.patch", "b.patch", "stack.toml")}
    for name, data in files.items():
        if name.startswith("with/"):
            (tmp_path / "context" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "context" / name).write_bytes(data)
    stack, again = (read_stack(place, load().targets) for place in (folder, tmp_path / "context/with/carried"))
    assert (again.sha256, again.outside) == (stack.sha256, stack.outside)
    pins = json.loads(files["pins.json"])["diffs"]
    assert [pins[f"vllm/{name}"]["stack_sha256"] for name in ("b", "a")] == [stack.sha256] * 2
    assert provenance.labels(request)["io.fp4patch.stacks"] == f"vllm/carried {stack.sha256}"
