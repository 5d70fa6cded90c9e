"""``doctor`` on released FlashInfers, as they are and patched: the release, the table, a verdict for each GPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Said
from flashinfer_wheel import is_python, unpack

from fp4patch.core.arch import GPUS
from variants import GUARDED, VARIANTS

pytestmark = pytest.mark.slow

KERNELS = "flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/quantization"
OTHERS = ("flashinfer/data/include/flashinfer/utils.cuh", "flashinfer/data/include/flashinfer/comm/", KERNELS)
"""Files that identify FlashInfer, and some that are patched."""

Install = Callable[[str], Path]
Doctor = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """``installed("0.5.0")``: its Python and some kernels, without CUTLASS."""
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", str(tmp_path / "home"))
    return lambda version: unpack(version, tmp_path / version, lambda name: is_python(name) or name.startswith(OTHERS))


@pytest.fixture
def doctor(fp4patch: Callable[..., Said]) -> Doctor:
    """Return exit status and the tree's part of the document; the CUDA release is 13.0 by default."""

    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        said = fp4patch("doctor", "--json", "--cuda", "13.0", *arguments)
        (tree,) = said.document["trees"]
        return said.status, tree

    return run


def verdicts(tree: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {line["gpu"]: (line["level"], line["verdict"]) for line in tree["gpus"]}


@pytest.mark.parametrize("version", ["0.5.0", "0.6.6", "0.6.7", "0.6.8", "0.7.2", "0.7.4"])
def test_the_verdict_is_the_record_of_the_release(installed: Install, doctor: Doctor, version: str) -> None:
    """The tree is examined again and compared with the record of the release in records/answers.json."""
    status, tree = doctor(installed(version))
    assert version in tree["releases"]
    assert (status, tree["findings"]) == (0, [])
    _, of_record = doctor(f"flashinfer=={version}")
    assert [(row["asked"], row["on"], row["reaches"]) for row in tree["builds"]] == [
        (row["asked"], row["on"], row["reaches"]) for row in of_record["builds"]
    ]
    level = "yellow" if version in ("0.5.0", "0.6.6") else "green"
    assert verdicts(tree) == dict.fromkeys(map(str, GPUS), (level, "NVFP4 native"))


def test_a_list_that_loses_the_suffix_is_red_until_a_patch_keeps_it(
    installed: Install, doctor: Doctor, fp4patch: Callable[..., Said]
) -> None:
    package = installed("0.6.6")
    status, tree = doctor(package, "--arch-list", "12.1")
    assert (status, verdicts(tree)) == (1, {"sm_121": ("red", "NVFP4 native for quantization only")})
    (line,) = tree["gpus"]
    assert line["todo"].startswith("unset FLASHINFER_CUDA_ARCH_LIST, which compiles them for 12.1a")
    assert tree["recommended"]["next"] == f"fp4patch apply --variant native {package}"
    for variant in sorted({*VARIANTS} - {*GUARDED}):
        assert fp4patch("apply", "--variant", variant, package).status == 0
        status, tree = doctor(package, "--arch-list", "12.1")
        assert (status, verdicts(tree)) == (0, {"sm_121": ("green", "NVFP4 native")})
        _, tree = doctor(package)
        assert verdicts(tree) == dict.fromkeys(map(str, GPUS), ("green", "NVFP4 native"))
        assert "0.6.6" in tree["releases"]
    assert fp4patch("revert", package).status == 0
    assert doctor(package, "--arch-list", "12.1")[0] == 1


def test_a_checkout_is_judged_as_its_package_is(installed: Install, doctor: Doctor, tmp_path: Path) -> None:
    package = installed("0.5.0")
    packaged = doctor(package)[1]
    top = tmp_path / "checkout"
    top.mkdir()
    for folder in ("include", "csrc"):
        (package / "data" / folder).rename(top / folder)
    package.rename(top / "flashinfer")
    _, tree = doctor(top)
    assert all(tree[key] == packaged[key] for key in ("builds", "gpus", "releases"))


def test_what_its_functions_do_not_determine_is_not_known(installed: Install, doctor: Doctor) -> None:
    package = installed("0.7.2")
    file = package / "compilation_context.py"
    file.write_text(file.read_text().replace("if major == 9:", "if torch.the_cluster_says(major):"))
    status, tree = doctor(package)
    (finding,) = tree["findings"]
    assert (status, finding["level"]) == (0, "yellow")
    assert "compilation_context.py:" in finding["found"]
    assert "`if torch.the_cluster_says(major):`: an unknown value decides" in finding["found"]
    assert verdicts(tree) == dict.fromkeys(map(str, GPUS), ("yellow", "NVFP4 native"))  # by a list that names a suffix
    assert 'unset or 12.0 or "12.0 12.1", which compiles them for unknown targets' in tree["gpus"][0]["because"]
    _, tree = doctor(package, "--arch-list", "12.1")
    assert verdicts(tree) == {"sm_121": ("not-judged", "not known")}


def test_compiled_modules_beside_it_are_said_to_be_loaded_instead(
    installed: Install, doctor: Doctor, fp4patch: Callable[..., Said]
) -> None:
    package = installed("0.5.0")
    module = package / "data/aot/fp4_gemm_cutlass_sm120/fp4_gemm_cutlass_sm120.so"
    module.parent.mkdir(parents=True)
    module.touch()
    (finding,) = doctor(package)[1]["findings"]
    assert (finding["level"], finding["subject"]) == ("yellow", "loaded instead")
    assert fp4patch("apply", "--variant", "native", package).status == 0
    (finding,) = doctor(package)[1]["findings"]
    assert "1 compiled module" in finding["found"]
