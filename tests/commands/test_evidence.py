"""``fp4patch evidence``: what it writes, the program without and with a GPU, and the file that comes back."""

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from command import Said, fits
from few_probes import few_probes

from fp4patch import cli
from fp4patch.commands.evidence import gpu_file, run
from fp4patch.commands.evidence.forms import digests

Run = Callable[..., Said]
PROBES = {"encode-half-x8": "cutlass", "encode-bfloat16": "cutlass", "construct-half-x8": "cutlass"}
PROGRAM = Path(run.__file__).parent / "program"
FAKE = Path(__file__).parents[1] / "helpers/fake_cuda.c"
MISSING = "error: there is no NVIDIA driver in this machine: libcuda.so.1"


@pytest.fixture(scope="module")
def kit(pristine_tree: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kit of three probes for two targets, made by the command. ``fake/libcuda.so.1`` acts as a GPU."""
    base = tmp_path_factory.mktemp("evidence")
    folder, tree = base / "kit", base / "cutlass"
    shutil.copytree(pristine_tree("cutlass", "4.2.1"), tree, symlinks=True)
    arguments = ["--variant", "next3", "--arch", "sm_90,sm_121a", "-o", str(folder), str(tree)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FP4PATCH_DATA", str(few_probes(base / "data", PROBES)))
        assert cli.run(["apply", "--variant", "next3", str(tree)]) == 0
        with redirect_stdout(StringIO()) as written:
            assert cli.run(["evidence", "--json", *arguments]) == 0
        fits("evidence", json.loads(written.getvalue()))
        (base / "fake").mkdir()
        command = ["cc", "-O2", "-shared", "-fPIC", "-w", f"-I{PROGRAM}", f"-I{folder / 'source'}"]
        subprocess.run([*command, "-o", base / "fake/libcuda.so.1", FAKE], check=True)
        yield folder


def start(kit: Path, result: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the program on the host's libcuda, with a fault in it or none."""
    program = kit / f"fp4patch-evidence-{platform.machine()}"
    environ = {"LD_LIBRARY_PATH": str(kit.parent / "fake"), **environ}
    return subprocess.run([program, "-o", result], capture_output=True, text=True, env=environ, check=False)


def test_the_kit_has_a_report_versions_and_a_program_that_needs_the_c_library_alone(kit: Path) -> None:
    assert json.loads((kit / "verify.json").read_text())["verdict"] == "pass"
    assert "encode-half-x8" in (kit / "report.html").read_text()
    page = (kit / "README.md").read_text()
    assert "(in it are 3 for sm_90, 3 for sm_121a)" in page
    assert "nvcc 13.0.88" in page
    assert "fp4patch evidence --variant next3 --arch sm_90,sm_121a" in page
    program = kit / f"fp4patch-evidence-{platform.machine()}"
    headers = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"NEEDED +(\S+)", headers) == ["libc.so.6"]
    assert max(tuple(map(int, one.split("."))) for one in re.findall(r"GLIBC_([\d.]+)", headers)) <= (2, 34)


def test_the_source_builds_with_a_c_compiler_alone(kit: Path) -> None:
    subprocess.run(["sh", kit / "source/build.sh"], check=True, env={"PATH": "/usr/bin:/bin"})
    built = subprocess.run([kit / "source/fp4patch-evidence", "-h"], capture_output=True, text=True, check=True)
    assert "next3 on cutlass 4.2.1" in built.stdout


def test_the_program_for_aarch64_is_there_or_the_kit_says_why_there_is_none(kit: Path) -> None:
    because = "there is no aarch64-linux-gnu-gcc here"
    can = platform.machine() == "aarch64" or shutil.which("aarch64-linux-gnu-gcc") is not None
    assert (kit / "fp4patch-evidence-aarch64").exists() is can
    assert (because in (kit / "README.md").read_text()) is not can


def test_without_a_driver_or_a_gpu_that_it_has_code_for_it_says_so_and_writes_nothing(
    kit: Path, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    for environ, message in (
        ({"LD_LIBRARY_PATH": ""}, MISSING),
        ({"FAKE_FAULT": "no-gpu"}, "error: the driver finds no GPU: no CUDA-capable device is detected"),
        ({"FAKE_ARCH": "100"}, 'error: Fake "GPU" is sm_100, and this program has code for sm_90 and sm_121a'),
    ):
        done = start(kit, result, **environ)
        assert (done.returncode, done.stderr[: len(message)]) == (2, message)
        assert done.stderr.count("\n") == 1
        assert not result.exists()


@pytest.mark.parametrize(("number", "arch"), [("90", "sm_90"), ("121", "sm_121a")])
def test_right_results_pass_on_the_machine_and_in_the_file(
    kit: Path, tmp_path: Path, fp4patch: Run, number: str, arch: str
) -> None:
    done = start(kit, tmp_path / "result.json", FAKE_ARCH=number)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 conversions are right" in done.stdout
    assert len(re.findall(r"right: .* 10\^9 values/s, 0 wrong, digest as expected", done.stdout)) == 3
    said = fp4patch("evidence", "--check", tmp_path / "result.json")
    assert said.status == 0
    assert f"{arch}: 3 of 3 conversions right, {65536 * 17:,} values compared" in said.out
    assert f'ran on Fake "GPU" (sm_{number})' in said.out
    assert "PASS" in said.out
    assert "Nothing in the file proves who made it." in said.out
    document = fp4patch("evidence", "--check", tmp_path / "result.json", "--json").document
    assert (document["verdict"], document["missing"]) == ("pass", {})
    assert {one["arch"] for one in document["runs"]} == {arch}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("wrong", "encode-half-x8 sm_90: 1 of 524,288 values are wrong and the first is 0x3a00 to 0x3, not 0x2"),
        ("skips", "encode-bfloat16 sm_90: 2 of 65,536 values are wrong and the first is"),
        ("signs", "NaNs keep a sign"),
        ("stray", "it stores behind its output"),
        ("crashes", "an illegal memory access was encountered"),
    ],
)
def test_every_fault_of_a_kernel_fails_on_the_machine_and_in_the_file(
    kit: Path, tmp_path: Path, fp4patch: Run, fault: str, message: str
) -> None:
    done = start(kit, tmp_path / "result.json", FAKE_FAULT=fault)
    assert done.returncode == 1
    said = fp4patch("evidence", "--check", tmp_path / "result.json")
    assert said.status == 1
    assert message in said.out
    assert "FAIL" in said.out


def edited(content: bytes, change: Callable[[Any], object]) -> bytes:
    document = json.loads(content)
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("form", "limit"),
    [
        ("float32 to e2m1, 4 values, stochastic", ", of float32 with stochastic rounding those with four of 256"),
        ("bfloat16 to e2m1, 8 values, stochastic", "all inputs\n"),
        ("float32 to e2m1, 8 values", "all inputs\n"),
    ],
)
def test_a_pass_names_the_inputs_that_did_not_run(form: str, limit: str) -> None:
    row = gpu_file.Run("cutlass 4.2.1", "x", "sm_90", form, digest=f"{digests()[form]:016x}")
    device = gpu_file.Device("a GPU", "sm_90", "580", "13.0", "x86_64")
    info = gpu_file.KitInfo("0.1.0", "next3", "13.0", "13.0", {}, {})
    found = gpu_file.Checked("a.json", info, device, (row,), {})
    assert f"is right for all inputs{limit.removeprefix('all inputs')}" in "\n".join(gpu_file.lines(found))


def first_run(**changes: object) -> Callable[[Any], None]:
    return lambda document: document["runs"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[:-30], "has no valid JSON"),
        (lambda c: b"PASS " + c, "has no valid JSON"),
        (lambda c: edited(c, lambda d: d.update(schema=2)), "has no valid schema"),
        (lambda c: edited(c, lambda d: d["device"].update(arch="sm_x")), "has no valid device.arch"),
        (lambda c: edited(c, first_run(wrong="0")), "has no valid runs.0.wrong"),
        (lambda c: edited(c, lambda d: d.pop("device")), "has no valid device"),
        (lambda c: edited(c, first_run(digest="0" * 16)), "the digest of the results is not the expected one"),
        (lambda c: edited(c, first_run(form="float16 to e2m1, 9 values")), "the digest of the results is not the"),
        (lambda c: edited(c, lambda d: d.update(runs=d["runs"][:1] * 3)), "2 conversions of the program without a"),
    ],
)
def test_a_file_that_is_damaged_or_of_other_results_fails(
    kit: Path, tmp_path: Path, fp4patch: Run, change: Callable[[bytes], bytes], message: str
) -> None:
    result = tmp_path / "result.json"
    start(kit, result)
    result.write_bytes(change(result.read_bytes()))
    said = fp4patch("evidence", "--check", result)
    assert said.status == 1
    assert message in " ".join((said.out or said.err).split())


def test_refuses_a_tree_that_does_not_pass_and_a_directory_that_is_not_empty(
    kit: Path, tmp_path: Path, fp4patch: Run
) -> None:
    tree = kit.parent / "cutlass"
    said = fp4patch("evidence", "--variant", "next3", "-o", kit, tree)
    assert (said.status, "is not empty" in said.err) == (1, True)
    said = fp4patch("evidence", "--variant", "turbo", "-o", tmp_path / "kit", tree)
    assert (said.status, "is not in the state of turbo" in " ".join(said.err.split())) == (1, True)
    assert not (tmp_path / "kit").exists()
    assert fp4patch("evidence", tree).status == 2
    assert fp4patch("evidence", "--check", tree / "x.json", "--variant", "next3").status == 2
