"""doctor's answer for a GPU, on small libraries that are compiled for the case."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cubins import CONVERTS, MULTIPLIES, compile_cuda, targets, wheel_of

from fp4patch import cli
from fp4patch.binaries import answer as answers
from fp4patch.binaries import scan
from fp4patch.binaries.findings import Answer, Axis, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.errors import UsageError
from fp4patch.doctor import run as verb
from fp4patch.doctor.gpus import Driver, Gpu
from fp4patch.doctor.packages import with_driver
from fp4patch.proof.toolchain import Toolchain

PLAIN = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }'
BOTH = CONVERTS + MULTIPLIES
TENSOR_MEMORY = """
#include <cstdio>
extern "C" __global__ void nvfp4_mla(const float* in, unsigned* out) {
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH__ < 1200 && __CUDA_ARCH__ >= 1000
  asm volatile("{.reg .pred p; setp.ne.b32 p, %1, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %2, %2, %1, p;}"
      :: "r"(out[0]), "r"(out[1]), "l"((unsigned long long)in[0]));
  unsigned byte;
  asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; cvt.u32.u8 %0, b;}" : "=r"(byte) : "f"(in[0]), "f"(in[1]));
  out[threadIdx.x] = byte;
#else
  printf("Trying to use UTCMMA without CUTE_ARCH_TCGEN05_TMEM_ENABLED.");
#endif
}
"""

Library = Callable[..., Path]


@pytest.fixture
def library(toolchain: Toolchain, tmp_path: Path) -> Library:
    """``library("a", PLAIN, "120f")``: a library in one directory, with the others of the test."""
    (tmp_path / "libraries").mkdir()

    def made(name: str, source: str, *names: str) -> Path:
        built = compile_cuda(toolchain, source, tmp_path / f"{name}.so", "-c", *targets(*names))
        return built.rename(tmp_path / "libraries" / built.name)  # without the source

    return made


def on_gb10(path: Path) -> Answer:
    return scan.examine(path, gpus=[GB10]).answers[0]


@pytest.mark.parametrize(
    ("source", "name", "answer", "verdict"),
    [
        (BOTH, "120f", "yes", "FP4 in hardware"),
        (BOTH, "compute_121a", "yes", "FP4 in hardware"),
        (MULTIPLIES, "120f", "reservation", "it multiplies in hardware"),
        (PLAIN, "compute_80", "not-for-fp4", "it loads by the driver's compiler alone"),
    ],
)
def test_native_means_conversions_and_matrix_instructions(
    library: Library, source: str, name: str, answer: str, verdict: str
) -> None:
    found = on_gb10(library("a", source, name))
    assert found.answer == answer
    assert found.verdict.startswith(verdict)


def test_fp4_code_for_another_gpu_is_not_made_up_for_by_an_unrelated_file(library: Library) -> None:
    folder = library("sm100", CONVERTS, "100a").parent
    assert on_gb10(folder).answer == "no"
    library("other", CONVERTS.replace("nvfp4_quantize", "nvfp4_other"), "120f")
    found = on_gb10(folder)
    assert (found.answer, found.verdict) == ("no", "FP4 code that it has is for other GPUs")
    assert "in sm100.so: nvfp4_quantize" in found.evidence
    library("same", BOTH, "120f")  # the same kernel for this GPU
    assert on_gb10(folder).answer == "yes"


def test_what_is_for_other_gpus_is_an_exception_where_fp4_works_and_more_of_it_loads(library: Library) -> None:
    folder = library("sm100", CONVERTS, "100a").parent
    for number, answer in enumerate(["no", "yes"]):  # one beside one does not make up for it
        library(f"own{number}", BOTH.replace("nvfp4_", f"nvfp4_{number}_"), "120f")
        found = on_gb10(folder)
        assert found.answer == answer
        assert "nvfp4_quantize" in found.because
    assert found.excepted == ("1 kernel (nvfp4_quantize)",)
    assert found.verdict.startswith("FP4 in hardware (2 conversions, 2 matrix instructions)")


def test_code_for_tensor_memory_is_by_design_whether_it_loads_or_not(library: Library) -> None:
    folder = library("quantize", BOTH, "120f").parent
    library("alone", TENSOR_MEMORY, "100a")
    library("beside", TENSOR_MEMORY.replace("nvfp4_mla", "nvfp4_mla_2"), "100a", "120f")
    found = on_gb10(folder)
    assert (found.answer, found.excepted) == ("yes", ())
    assert "by design" in found.because
    alone = on_gb10(folder / "alone.so")
    assert alone.answer == "no"
    assert "tcgen05" in alone.todo


def test_a_library_that_does_not_load_is_named_and_most_that_do_not_load_are_no(library: Library) -> None:
    folder = library("good", BOTH, "120").parent
    library("good", BOTH, "120f")
    library("old1", PLAIN, "90")
    found = on_gb10(folder)
    assert (found.answer, found.axis) == ("reservation", Axis.LOADS)
    assert "1 of 1 fatbin of old1.so" in found.verdict
    library("old2", PLAIN, "80")
    assert (on_gb10(folder).answer, on_gb10(folder).verdict) == ("no", "2 of 3 fatbins do not load")


def test_kernels_that_move_bytes_are_no_missing_fp4_code_and_profilers_are_not_judged(library: Library) -> None:
    copies = """struct Float4_e2m1fn_x2 { char x; };
    namespace at { namespace native {
    template <typename T> __global__ void vectorized_elementwise_kernel(T* out, const T* in) { *out = *in; }
    template __global__ void vectorized_elementwise_kernel(Float4_e2m1fn_x2*, const Float4_e2m1fn_x2*);
    }}"""
    profiler = library("libcupti", PLAIN, "90")
    report = scan.examine(profiler, gpus=[GB10])
    (judged,) = report.answers
    assert (judged.answer, judged.verdict) == ("not-judged", "it has no device code but that of NVIDIA's profilers")
    other = Arch(12, 0)  # as in an image for several platforms: the file is in that of another GPU's machine
    assert answers.answer(other, [GB10, other], report).verdict == "there is no device code"
    folder = library("torch_cuda", copies, "120").parent
    assert on_gb10(folder).verdict == "it loads, and has no FP4 code for sm_121"


def test_a_library_for_its_family_alone_is_lost_beside_one_that_loads(library: Library) -> None:
    folder = library("a", PLAIN, "120").parent
    library("infllm_ops", PLAIN, "90a", "120a")
    found = on_gb10(folder)
    assert found.answer == "no"
    assert "infllm_ops.so" in found.because
    assert scan.examine(folder, gpus=[Arch(12, 0)]).answers[0].answer == "not-for-fp4"


def test_code_that_is_built_for_the_right_target_is_not_to_be_built_for_it(library: Library) -> None:
    folder = library("a", CONVERTS, "120a").parent
    library("b", "#define NAME nvfp4_b\n" + CONVERTS.replace("nvfp4_quantize", "NAME").replace("1000", "1300"), "120a")
    found = scan.examine(folder, gpus=[Arch(12, 0)]).answers[0]
    assert found.answer == "reservation"
    assert "sm_120a" not in found.todo


def test_a_wheel_for_another_processor_says_so(library: Library, tmp_path: Path) -> None:
    members = {"p/a.so": library("a", BOTH, "120f").read_bytes()}
    found = scan.examine(wheel_of(tmp_path / "p-1-cp312-abi3-manylinux_2_31_x86_64.whl", members)).answers
    assert [one.answer for one in found] == ["yes", "reservation"]
    assert (found[1].axis, "x86-64" in found[1].because) == (Axis.PROCESSOR, True)
    x86 = str(tmp_path / "p-1-cp312-abi3-manylinux_2_31_x86_64.whl")
    assert [cli.run(["doctor", "--require", gpu, x86]) for gpu in ("sm_120:native", "gb10:native")] == [0, 1]
    # What a build for several GPUs made is asked on the machine that it was built on.
    assert cli.run(["doctor", "--require", "sm_120,gb10:variant=next3", x86]) == 0
    found = scan.examine(wheel_of(tmp_path / "p-1-cp312-abi3-manylinux_2_31_aarch64.whl", members)).answers
    assert [one.answer for one in found] == ["yes", "yes"]


def test_sources_that_are_compiled_later_are_not_judged(
    library: Library, tmp_path: Path, doctor: Callable[..., tuple[int, dict[str, Any]]]
) -> None:
    path = wheel_of(tmp_path / "p-1-py3-none-any.whl", {"p/csrc/quantize.cu": CONVERTS.encode(), "p/a.py": b""})
    status, document = doctor("--for", "gb10", path)
    assert status == 1
    assert document["verdict"] == document["binaries"][0]["answers"][0]["answer"] == "not-judged"
    assert cli.run(["doctor", "--for", "gb10", str(path), str(library("a", BOTH, "120f"))]) == 0
    assert cli.run(["doctor", "--require", "sm_121", str(path)]) == 1


def test_the_first_line_is_the_answer_and_files_are_listed_with_details(
    library: Library, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = library("a", BOTH, "120f")
    assert cli.run(["doctor", "--for", "DGX-Spark", str(path)]) == 0
    short = capsys.readouterr().out.splitlines()
    assert short[0] == "✓ sm_121  yes: FP4 in hardware (1 conversion, 1 matrix instruction)"
    assert cli.run(["doctor", "--for", "gb10", "--details", str(path)]) == 0
    assert "sm_121 loads sm_120f" in capsys.readouterr().out
    assert not any("sm_121 loads" in line for line in short)


@pytest.mark.parametrize(
    ("files", "met"),
    [
        ("", False),
        (":except=hopper*", True),
        (":except=none*,hopper*", True),
        (":only=*/a.so", True),
        (":only=hopper.so", False),
    ],
)
def test_a_requirement_concerns_the_files_in_question(
    library: Library, tmp_path: Path, files: str, *, met: bool
) -> None:
    members = {"p/a.so": library("a", BOTH, "120f").read_bytes(), "p/hopper.so": library("h", PLAIN, "90").read_bytes()}
    path = wheel_of(tmp_path / "p-1-py3-none-any.whl", members)
    assert cli.run(["doctor", "--require", f"sm_121:native{files}", str(path)]) == (not met)


@pytest.mark.parametrize(
    ("sources", "gpu", "met"),
    [
        ({"a": (BOTH, "120f")}, "gb10", True),
        ({"a": (BOTH, "120f"), "by_design": (TENSOR_MEMORY, "100a")}, "gb10", True),
        ({"a": (BOTH, "120f"), "old": (PLAIN, "75")}, "gb10", True),  # of two files, one without FP4 code
        ({"a": (BOTH, "120a")}, "gb10", False),
        ({"a": (PLAIN, "120f")}, "gb10", False),
        ({"stubs": (TENSOR_MEMORY, "100a", "120f")}, "gb10", False),
    ],
)
def test_a_gate_for_fp4_leaves_out_what_is_by_design(
    library: Library, sources: dict[str, tuple[str, ...]], gpu: str, *, met: bool
) -> None:
    *_, last = (library(name, *given) for name, given in sources.items())
    assert cli.run(["doctor", "--require", f"{gpu}:fp4", str(last.parent)]) == (not met)


def test_kernels_that_do_nothing_are_no_and_a_package_without_fp4_is_not_for_it(library: Library) -> None:
    stubs = on_gb10(library("stubs", TENSOR_MEMORY, "100a", "120f"))
    assert (stubs.answer, stubs.verdict) == ("no", "its FP4 kernels do nothing on it")
    assert "build it" not in stubs.todo
    other = on_gb10(library("other", PLAIN, "120f"))
    assert (other.answer, other.said) == ("not-for-fp4", "not what this package is for")


def test_few_kernels_that_do_nothing_are_an_exception_of_a_package_for_other_things(library: Library) -> None:
    stubs, other = library("stubs", TENSOR_MEMORY, "100a", "120f"), library("other", PLAIN, "120f")
    copies = [other.with_name(f"other{number}.so") for number in range(8)]
    for copy in copies:
        copy.write_bytes(other.read_bytes())
    assert on_gb10(stubs.parent).answer == "not-for-fp4"
    assert on_gb10(stubs.parent).excepted == ("1 kernel (nvfp4_mla)",)
    copies[0].unlink()
    assert on_gb10(stubs.parent).answer == "no"


@pytest.mark.parametrize(("machine", "answer"), [(62, "reservation"), (183, "yes")])
def test_a_library_for_another_processor_says_so(library: Library, machine: int, answer: str) -> None:
    path = library("a", BOTH, "120f")
    code = bytearray(path.read_bytes())
    code[16:20] = bytes((3, 0, machine, 0))  # the type and the machine of an ELF header: a shared library for it
    path.write_bytes(code)
    assert on_gb10(path).answer == answer
    assert scan.examine(path, gpus=[Arch(12, 0)]).answers[0].answer == "yes"
    assert cli.run(["doctor", "--require", "gb10:fp4", str(path)]) == (answer != "yes")
    assert cli.run(["doctor", "--require", "sm_120:fp4", str(path)]) == 0


@pytest.mark.parametrize("name", ["build.log", "requirements.txt", "cutlass==4.2.1"])
def test_what_nothing_can_be_required_of_says_what_can(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build.log").write_text("nothing\n")
    (tmp_path / "requirements.txt").write_text("vllm==0.33.0\n")
    assert cli.run(["doctor", "--require", "gb10:fp4", name]) == 2
    assert "it is about compiled code: name a wheel" in " ".join(capsys.readouterr().err.split())


def test_a_yes_is_one_line_with_what_is_excepted(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    folder = library("a", BOTH, "120f").parent
    library("more", PLAIN, "120")
    library("old", PLAIN, "75")
    assert cli.run(["doctor", "--for", "gb10", str(folder)]) == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first == "✓ sm_121  yes; 1 fatbin excepted"
    assert second.startswith(str(folder)[:20])
    assert cli.run(["doctor", "--for", "gb10", "--details", str(folder)]) == 0
    assert "nothing loads of 1 of 1 fatbin of old.so" in capsys.readouterr().out


def test_names_of_gpus_are_those_that_people_use() -> None:
    assert verb.question(["GB10,rtx-5090;RTX-PRO-6000"], None, None).gpus == (GB10, Arch(12, 0))
    assert verb.question(["gx10", "rtx-5070-ti"], None, None).gpus == (GB10, Arch(12, 0))
    for name in ("5050", "5090", "RTX5070Ti", "RTX_PRO_4500", "geforce-rtx-5060-ti"):
        assert verb.question([name], None, None).gpus == (Arch(12, 0),), name
    with pytest.raises(UsageError) as raised:
        verb.question(["rtx-5091"], None, None)
    assert raised.value.help.startswith("did you mean rtx-5090?")


def test_code_for_tensor_memory_is_not_told_to_be_built_for_this_gpu(library: Library) -> None:
    # What multiplies BF16 in tensor memory has no FP4 instruction, and no kernel of that name.
    source = TENSOR_MEMORY.replace("nvfp4_mla", "mla").partition("  unsigned byte;")[0] + "#endif\n}\n"
    found = on_gb10(library("sm100", source, "100f"))
    assert (found.answer, found.verdict) == ("no", "nothing loads")
    assert "tensor memory" in found.todo
    assert "build it" not in found.todo
    plain = on_gb10(library("plain", PLAIN, "100f"))
    assert "build it for sm_120f" in plain.todo


@pytest.mark.parametrize(
    ("names", "driver", "level"),
    [
        (["compute_80"], "12.8", Level.RED),  # nvcc 13.0 writes PTX 9.0
        (["compute_80"], "13.0", Level.OTHER),
        (["120f"], "12.8", Level.OTHER),  # machine code: no compiler of the driver
        (["120f"], "", Level.OTHER),
    ],
)
def test_a_driver_that_is_older_than_the_ptx_is_compared(
    library: Library, names: list[str], driver: str, level: Level
) -> None:
    found = scan.examine(library("a", PLAIN, *names), gpus=[GB10])
    machine = Driver(driver, (Gpu("NVIDIA GB10", GB10),)) if driver else None
    (answer,) = with_driver(found, machine).answers
    assert answer.level is level
    other = Driver("12.8", (Gpu("NVIDIA H200", Arch(9, 0)),))
    assert with_driver(found, other) == found
