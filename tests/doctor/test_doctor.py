"""``doctor`` on real source trees: the release by content, the patches, the build, what each GPU gets, the status."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from share import share

from fp4patch import cli
from fp4patch.adapters.vllm import cmake
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GB10, GPUS, Arch
from fp4patch.core.cuda import has, known_gpus
from fp4patch.doctor.run import question
from fp4patch.proof.toolchain import Toolchain

Trees = Callable[[str, str], Path]
Doctor = Callable[..., tuple[int, dict[str, Any]]]
SURVEYED = tuple(archive.version for archive in load().target("vllm").archives)
ALL = os.environ.get("FP4PATCH_TEST_ALL_TREES")
LOOKED_AT = SURVEYED if ALL else (*share(SURVEYED[:-1], 2, "doctor"), SURVEYED[-1])

needs_cmake = pytest.mark.skipif(cmake() is None, reason="no cmake: pip install cmake")


def gpu(document: dict[str, Any], name: str, tree: int = 0) -> dict[str, str]:
    return next(line for line in document["trees"][tree]["gpus"] if line["gpu"] == name)


# --- which release it is ---------------------------------------------------------------------------------------------


def test_a_tree_that_lies_about_its_version_is_told(tree_copy: Trees, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    header = tree / "include/cutlass/version.h"
    header.write_text(header.read_text().replace("#define CUTLASS_MINOR 2", "#define CUTLASS_MINOR 3"))
    assert cli.run(["doctor", str(tree)]) == 0
    assert "CUTLASS 4.2.0 or 4.2.1 or 4.2.2 (by content; it states 4.3.1)" in capsys.readouterr().out


def test_a_tree_without_a_version_is_known_by_content_and_advised_by_it(
    doctor: Doctor, vllm: Callable[[str], Path]
) -> None:
    tree = vllm("0.33.0")
    (tree / "PKG-INFO").unlink()
    (tree / "vllm/_version.py").unlink(missing_ok=True)
    _, document = doctor(tree, "--cuda", "13.0")
    (found,) = document["trees"]
    assert (found["version"], found["releases"]) == ("", ["0.33.0"])
    assert found["recommended"]["variant"] == ""


# --- what the build makes --------------------------------------------------------------------------------------------


@needs_cmake
@pytest.mark.parametrize("version", LOOKED_AT)
@pytest.mark.parametrize("cuda", ["12.9", "13.0"])
def test_the_verdict_is_what_the_trees_own_functions_make_of_the_list(
    doctor: Doctor, pristine_tree: Trees, version: str, cuda: str
) -> None:
    """Against the record, which ``tools.regenerate answers`` made, and for each GPU by the rule of the suffix."""
    status, document = doctor(pristine_tree("vllm", version), "--cuda", cuda)
    (tree,) = document["trees"]
    assert version in tree["releases"]
    _, of_record = doctor(f"vllm=={version}", "--cuda", cuda)
    trees = (tree, of_record["trees"][0])
    made = [{row["asked"]: row["kernels"] for row in one["builds"] if row["asked"]} for one in trees]
    assert made[0] == made[1]
    for name in map(str, GPUS):
        served = [row for row in tree["builds"] if row["reaches"][name] == "native"]
        assert (gpu(document, name)["level"] == "red") is not bool(served)
    assert status == (1 if any(line["level"] == "red" for line in tree["gpus"]) else 0)


@needs_cmake
def test_a_list_that_reaches_no_kernel_on_gb10_is_red_and_another_is_named(
    doctor: Doctor, pristine_tree: Trees
) -> None:
    asked = ("--cuda", "13.0", "--torch-cuda-arch-list", "12.0a;12.1a")
    status, document = doctor(pristine_tree("vllm", "0.33.0"), *asked)
    line = gpu(document, "sm_121")
    assert (status, line["level"], line["verdict"]) == (1, "red", "nothing loads")
    assert line["todo"].startswith("export TORCH_CUDA_ARCH_LIST=12.1a,")
    assert gpu(document, "sm_120")["level"] == "green"
    status, document = doctor(pristine_tree("vllm", "0.33.0"), *asked, "--for", "sm_120")
    assert status == 0
    assert [line["gpu"] for line in document["trees"][0]["gpus"]] == ["sm_120"]


@needs_cmake
def test_a_gpu_that_the_list_does_not_name_is_not_judged_unless_it_is_asked_about(
    doctor: Doctor, pristine_tree: Trees
) -> None:
    asked = ("--cuda", "12.9", "--torch-cuda-arch-list", "12.1a")
    status, document = doctor(pristine_tree("vllm", "0.33.0"), *asked)
    assert (status, [line["gpu"] for line in document["trees"][0]["gpus"]]) == (0, ["sm_121"])
    status, document = doctor(pristine_tree("vllm", "0.33.0"), *asked, "--for", "sm_120")
    assert (status, gpu(document, "sm_120")["verdict"]) == (1, "nothing loads")


@needs_cmake
def test_a_patched_tree_is_judged_as_it_is(
    doctor: Doctor, vllm: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = vllm("0.14.1")
    asked = ("--cuda", "12.9", "--torch-cuda-arch-list", "12.0a;12.1a")
    status, document = doctor(tree, *asked)
    assert (status, gpu(document, "sm_121")["todo"]) == (1, f"fp4patch apply --variant native {tree}")
    assert cli.run(["apply", "--variant", "native", str(tree)]) == 0
    capsys.readouterr()
    status, document = doctor(tree, *asked)
    (found,) = document["trees"]
    assert (status, gpu(document, "sm_121")["verdict"]) == (0, "NVFP4 native")
    assert found["releases"] == ["0.14.0", "0.14.1"]  # the two share the files that identify releases
    states = {patch["patch"]: patch["state"] for patch in found["patches"]}
    native = ("cmake-sm121a", "detected-arch", "fa3-hopper-only", "native-arch", "sm120-family")
    assert states == {f"vllm/{name}": "applied" for name in native} | {
        "vllm/e2m1-asm": "pristine",
        "vllm/gdn-prefill": "not-needed",
        "vllm/kv-scales": "not-needed",
        "vllm/moe-defines": "upstreamed",
    }
    assert found["recommended"]["next"] == f"fp4patch verify --variant native {tree}"


ENCODER = re.compile(r"(inline __device__ uint32_t fp32_vec8?_to_e2m1\(.*?\{\n)", re.DOTALL)


@needs_cmake
@pytest.mark.parametrize(
    ("place", "cuda", "level", "verdict"),
    [
        ("#if __CUDA_ARCH__ == 1210\n  return 0;\n#endif\n", "12.9", "red", "conversions are left out"),
        ("#if __CUDA_ARCH__ == 1210\n  return 0;\n#endif\n", "13.0", "green", "NVFP4 native"),  # for 12.0f: 1200
        (
            "#ifdef MINE\n  return 0;\n#endif\n",
            "13.0",
            "yellow",
            "4 conversions not decided by the files that were read",
        ),
        ("  if (array[0] > 6) return 0;\n", "12.9", "green", "NVFP4 native"),
    ],
)
def test_a_recipe_that_returns_a_constant_for_sm_121_is_no(
    doctor: Doctor, vllm: Callable[[str], Path], place: str, cuda: str, level: str, verdict: str
) -> None:
    tree = vllm("0.33.0")
    header = tree / "csrc/quantization/fp4/nvfp4_utils.cuh"
    text, number = ENCODER.subn(rf"\g<1>{place}", header.read_text())
    assert number
    header.write_text(text)
    _, document = doctor(tree, "--cuda", cuda, "--arch-list", "12.1a")
    line = gpu(document, "sm_121")
    assert (line["level"], line["verdict"]) == (level, verdict)
    assert ("nvfp4_utils.cuh:" in " ".join(line["evidence"])) is (level != "green")


@needs_cmake
def test_software_beside_a_variant_of_hardware_is_a_reservation(doctor: Doctor, vllm: Callable[[str], Path]) -> None:
    tree = vllm("0.16.0")
    header = tree / "csrc/quantization/fp4/nvfp4_utils.cuh"
    begin, end = header.read_text().split("(float (&array)[8]) {\n  uint32_t val;\n", 1)
    body, end = end.split("  return val;", 1)
    software = "  val = 0;\n  for (int i = 0; i < 8; ++i) val |= mine(array[i]) << (4 * i);\n"
    branches = f"#if __CUDA_ARCH__ == 1210\n{software}#else\n{body}#endif\n"
    header.write_text(f"{begin}(float (&array)[8]) {{\n  uint32_t val;\n{branches}  return val;{end}")
    assert cli.run(["apply", "--variant", "native", str(tree)]) == 0
    _, document = doctor(tree, "--cuda", "13.0")
    line = gpu(document, "sm_121")
    assert line["level"] == "yellow"
    assert "with software in its place" in f"{line['verdict']} {line['because']}"


@needs_cmake
def test_nothing_is_recommended_for_an_edited_tree_that_compiles_nothing(
    doctor: Doctor, vllm: Callable[[str], Path]
) -> None:
    tree = vllm("0.33.0")
    lists = tree / "CMakeLists.txt"
    text, number = re.subn(r'(\(FP4_SM120_ARCHS) "[^"]*"', r'\1 "99.0f"', lists.read_text())
    assert number
    lists.write_text(text)
    _, document = doctor(tree, "--cuda", "13.0")
    assert gpu(document, "sm_121")["level"] == "red"
    assert document["trees"][0]["recommended"]["variant"] is None


@needs_cmake
@pytest.mark.parametrize(
    ("version", "asked", "lacks"),
    [("0.11.1", "12.1a", True), ("0.11.1", "10.0a;12.1a", False), ("0.14.1", "12.1a", False)],
)
def test_a_library_that_calls_what_the_list_leaves_out_is_no(
    doctor: Doctor, pristine_tree: Trees, version: str, asked: str, lacks: bool
) -> None:
    """Of 0.11.1 with 12.x alone `import vllm._C` ends with undefined symbol: cutlass_moe_mm_sm100."""
    _, document = doctor(pristine_tree("vllm", version), "--cuda", "12.9", "--arch-list", asked, "--for", "gb10")
    line = gpu(document, "sm_121")
    assert (line["verdict"] == "its library cannot be imported") is lacks
    assert ("cutlass_moe_mm_sm100" in " ".join(line["evidence"])) is lacks


@needs_cmake
def test_a_software_variant_is_named_where_the_build_compiles_it(
    doctor: Doctor, vllm: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = vllm("0.33.0")
    assert cli.run(["apply", "--variant", "turbo", str(tree)]) == 0
    capsys.readouterr()
    _, document = doctor(tree, "--cuda", "13.0", "--torch-cuda-arch-list", "12.0a;12.1a")
    assert gpu(document, "sm_120")["verdict"] == "NVFP4 native"
    assert gpu(document, "sm_121")["verdict"] == "software conversion (turbo)"


@needs_cmake
@pytest.mark.parametrize(
    ("version", "asked", "says"),
    [
        ("0.14.1", "121a", "write 12.1a"),
        ("0.11.0", "12.1f", "PyTorch 2.8.0, which it builds with, does not"),
    ],
)
def test_a_list_that_the_trees_pytorch_does_not_take_is_no_and_is_not_recommended(
    doctor: Doctor, pristine_tree: Trees, version: str, asked: str, says: str
) -> None:
    _, document = doctor(pristine_tree("vllm", version), "--cuda", "13.0", "--arch-list", asked, "--for", "gb10")
    line = gpu(document, "sm_121")
    assert line["level"] == "red"
    assert says in " ".join(line["evidence"])
    assert not re.search(r"12\.[01]f", line["todo"])


@needs_cmake
@pytest.mark.parametrize(
    ("cuda", "asked", "name", "level"),
    [
        ("12.8", "12.1a", "sm_121", "red"),
        ("12.8", "12.0f", "sm_120", "red"),
        ("12.8", "12.0f", "sm_121", "red"),
        ("12.8", "12.0a", "sm_120", "green"),
        ("12.4", "12.0a", "sm_120", "red"),
    ],
)
def test_a_target_that_the_compiler_does_not_have_is_red_and_no_patch_is_recommended(
    doctor: Doctor,
    pristine_tree: Trees,
    cuda: str,
    asked: str,
    name: str,
    level: str,
) -> None:
    """By what `ptxas --help` of each release lists: 12.8 has sm_120a alone of SM12x's targets with a suffix."""
    question = ("--cuda", cuda, "--arch-list", asked, "--for", name)
    status, document = doctor(pristine_tree("vllm", "0.33.0"), *question)
    line = gpu(document, name)
    assert (line["level"], status) == (level, 1 if level == "red" else 0)
    if cuda == "12.4" or (cuda, name) == ("12.8", "sm_121"):
        assert line["todo"].startswith("compile with CUDA 12.9")
        assert document["trees"][0]["recommended"]["next"] == ""


@pytest.mark.parametrize(
    ("cuda", "on_120", "on_121"),
    [("12.4", "red", "red"), ("12.8", "green", "red"), ("12.9", "green", "green"), ("13.0", "green", "green")],
)
def test_headers_are_judged_for_the_cuda_release_that_compiles_them(
    doctor: Doctor, pristine_tree: Trees, cuda: str, on_120: str, on_121: str
) -> None:
    status, document = doctor(pristine_tree("cutlass", "4.5.0"), "--cuda", cuda)
    assert [gpu(document, name)["level"] for name in map(str, GPUS)] == [on_120, on_121]
    assert status == (1 if "red" in (on_120, on_121) else 0)
    assert bool(document["trees"][0]["recommended"]["variant"]) <= (cuda != "12.4")


def test_a_gpu_of_another_family_is_not_judged_of_a_tree(doctor: Doctor, pristine_tree: Trees) -> None:
    for tree in (pristine_tree("vllm", "0.33.0"), pristine_tree("cutlass", "4.5.0")):
        status, document = doctor(tree, "--for", "sm_90", "--cuda", "13.0")
        assert (status, gpu(document, "sm_90")["level"]) == (1, "not-judged")


def test_the_table_of_targets_is_what_the_compiler_says(toolchain: Toolchain) -> None:
    cuda = Version(toolchain.info.nvcc)
    listed = subprocess.run([str(toolchain.root / "bin/ptxas"), "--help"], capture_output=True, text=True, check=True)
    names = {Arch.parse(name) for name in re.findall(r"'(sm_\d+[af]?)'", listed.stdout)}
    every = {Arch(arch.major, arch.minor, suffix) for arch in known_gpus() for suffix in ("", "a", "f")}
    # 9.0f, 8.9a and the like do not exist.
    assert {arch for arch in every if has(cuda, arch)} - {Arch(9, 0, "f")} == names


# --- lists in the environment ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "asked", "level"),
    [
        ("TORCH_CUDA_ARCH_LIST", "12.0a;12.1a", "sm_121", "red"),  # CUDA 13 drops 12.1a from it
        ("TORCH_CUDA_ARCH_LIST", "12.0a;12.1a", "", "yellow"),
        ("TORCH_CUDA_ARCH_LIST", "12.0 12.1", "", "yellow"),
        ("TORCH_CUDA_ARCH_LIST", "Blackwell", "sm_121", "not-judged"),
        ("TORCH_CUDA_ARCH_LIST", " 9.0a+PTX;;12.1a+PTX ;", "sm_121", "green"),
        ("TORCH_CUDA_ARCH_LIST", "121a", "sm_121", "red"),
        ("FLASHINFER_CUDA_ARCH_LIST", "12.0f", "sm_121", "green"),
    ],
)
def test_a_list_in_the_environment_is_judged_as_a_tree_would_judge_it_and_its_remedy_is_green(
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    asked: str,
    level: str,
) -> None:
    def found() -> dict[str, str]:
        _, document = doctor("--cuda", "13.0", *(["--for", asked] if asked else []))
        return next(finding for finding in document["machine"]["findings"] if finding["subject"] == name)

    monkeypatch.setenv(name, value)
    first = found()
    assert first["level"] == level
    if level != "green" and value not in ("Blackwell", "12.0 12.1"):
        remedy = shlex.split(first["remedy"].removeprefix("for example ").replace(", ", " "))
        if remedy[0] == "unset":
            assert remedy[1].startswith(name)
            return
        assert remedy[0] == "export"
        monkeypatch.setenv(*remedy[1].split("=", 1))
        assert found()["level"] == "green"


# --- header libraries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "level", "verdict"),
    [
        ("4.0.0", "yellow", "software conversion"),  # its condition names no SM121
        ("4.2.1", "green", "NVFP4 native"),
        ("4.5.0", "green", "NVFP4 native"),
    ],
)
def test_cutlass_is_judged_by_the_condition_in_its_header(
    doctor: Doctor, pristine_tree: Trees, version: str, level: str, verdict: str
) -> None:
    status, document = doctor(pristine_tree("cutlass", version))
    line = gpu(document, "sm_121")
    assert (status, line["level"], line["verdict"]) == (0, level, verdict)
    assert gpu(document, "sm_120")["verdict"] == "NVFP4 native"


@pytest.mark.parametrize(
    ("asked", "on_120", "on_121"),
    [
        (["12.0"], "software conversion", None),
        (["12.0", "--for", "sm_121"], None, "software conversion"),
        (["12.1+PTX;12.1a"], None, "NVFP4 native"),
        (["12.0f"], "NVFP4 native", None),
        (["12.0f", "--for", "sm_121"], None, "NVFP4 native"),
        (["12.0a", "--for", "sm_120,sm_121"], "NVFP4 native", "nothing loads"),
        (["9.0a"], "nothing loads", "nothing loads"),
    ],
)
def test_cutlass_is_judged_for_the_targets_of_the_list(
    doctor: Doctor,
    pristine_tree: Trees,
    asked: list[str],
    on_120: str | None,
    on_121: str | None,
) -> None:
    _, document = doctor(pristine_tree("cutlass", "4.2.1"), "--cuda", "13.0", "--arch-list", *asked)
    found = {line["gpu"]: line["verdict"] for line in document["trees"][0]["gpus"]}
    assert (found.get("sm_120"), found.get("sm_121")) == (on_120, on_121)
    assert (document["verdict"] == "green") == (set(found.values()) == {"NVFP4 native"})


OFF = "#undef CUDA_PTX_FP4FP6_CVT_ENABLED"
OPERAND = " || defined(CUTLASS_ARCH_MMA_SM121{}_ENABLED)"


def test_cutlass_that_was_edited_by_hand_is_judged_by_what_its_header_comes_to(
    doctor: Doctor, tree_copy: Trees
) -> None:
    """The expectations are those of ``g++ -E -dM`` with the macros of nvcc."""
    tree = tree_copy("cutlass", "4.2.1")
    header = tree / "include/cutlass/float_subbyte.h"
    upstream = header.read_text()
    of_family, of_gpu = (upstream.replace(OPERAND.format(suffix), "") for suffix in "FA")
    for text, on_120, on_121 in (
        (f"{upstream}\n{OFF}\n", "software conversion", "software conversion"),
        (f"{upstream}\n#if __CUDA_ARCH__ == 1210\n{OFF}\n#endif\n", "NVFP4 native", "software conversion"),
        (of_family, "NVFP4 native", "NVFP4 native on sm_121a only"),
        (of_gpu, "NVFP4 native", "NVFP4 native"),  # the family's condition holds for sm_121a too
        (f"{OFF}\n{upstream}", "NVFP4 native", "NVFP4 native"),
        (f"{upstream}\n#ifdef MINE\n#define CUDA_PTX_FP4FP6_CVT_ENABLED 1\n#endif\n", "NVFP4 native", "NVFP4 native"),
        (f"{upstream}\n#ifdef MINE\n{OFF}\n#endif\n", "not known", "not known"),
    ):
        header.write_text(text)
        _, document = doctor(tree, "--cuda", "13.0")
        assert [gpu(document, name)["verdict"] for name in ("sm_120", "sm_121")] == [on_120, on_121]


@pytest.mark.parametrize(
    ("variant", "verdict"),
    [("turbo", "software conversion (turbo)"), ("next2", "software conversion (next2)"), ("next3", "NVFP4 native")],
)
def test_the_variant_on_cutlass_decides_for_sm_121_alone(
    doctor: Doctor,
    tree_copy: Trees,
    capsys: pytest.CaptureFixture[str],
    variant: str,
    verdict: str,
) -> None:
    tree = tree_copy("cutlass", "4.2.1")
    assert cli.run(["apply", "--variant", variant, str(tree)]) in (0, 1)
    capsys.readouterr()
    _, document = doctor(tree)
    assert document["trees"][0]["variant"] == variant
    assert gpu(document, "sm_121")["verdict"] == verdict
    assert gpu(document, "sm_120")["verdict"] == "NVFP4 native"


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["--for", "GB11"],
        ["--for", "sm_121a"],
        ["--for", "sm_999"],
        ["--require", "sm_120,sm_999"],
        ["no-such-folder/x.y"],
        ["--torch-cuda-arch-list", "Blackwell"],
        ["--torch-cuda-arch-list", "12.2a"],
        ["--cuda", "latest"],
        ["--cuda", "99"],
        ["--cuda", "\N{ARABIC-INDIC DIGIT ONE}3.0"],
        ["no such name"],
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", *arguments]) == 2
    assert "help:" in capsys.readouterr().err


def test_lists_have_the_separators_of_every_command() -> None:
    for text in ("sm_121,sm_120", "sm_121;12.0", "121 sm_120", "sm_121,sm_120,"):
        assert question([text], None, None).gpus == (GB10, Arch(12, 0))
    for text in ("12.0a;12.1a+PTX", "12.0a,12.1a+PTX", "sm_120a 121a+PTX", "12.0a; 12.1a+PTX;"):
        assert question((), text, None).asked == "12.0a;12.1a+PTX"
    required = question((), None, None, ["sm_120,sm_121:native", "sm_121"]).required
    assert [one.text for one in required] == ["sm_120:native", "sm_121:native", "sm_121"]


def test_doctor_changes_nothing(pristine_tree: Trees, tmp_path: Path) -> None:
    tree = tmp_path / "cutlass"
    shutil.copytree(pristine_tree("cutlass", "4.2.1") / "include/cutlass", tree / "include/cutlass")
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    assert cli.run(["doctor", "--json", str(tree)]) == 0
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*")} == before
