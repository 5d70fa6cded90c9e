"""Findings of doctor on real compiled files: the code that each GPU loads, and the verdict."""

import gzip
import io
import json
import random
import shutil
import struct
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from cubins import CONVERTS, LOSES, MULTIPLIES, compile_cuda, tar_of, targets, wheel_of
from packaging.version import Version
from rich.console import Console

from fp4patch import cli
from fp4patch.binaries import device_code, scan
from fp4patch.binaries.findings import Axis, Level
from fp4patch.binaries.report import BinaryReport, Idle, LostKernel
from fp4patch.commands.doctor_text import compiled_text
from fp4patch.core.arch import GB10, GPUS, Arch
from fp4patch.core.errors import BinaryError
from fp4patch.doctor import run as verb
from fp4patch.proof.toolchain import Toolchain

ENCODER = Path(__file__).parents[2] / "encoders/half_pair.cuh"
SOFTWARE = f"""
#include "{ENCODER}"
extern "C" __global__ void encode(const float* in, unsigned char* out) {{
  out[threadIdx.x] = ::fp4patch_half_pair::e2m1_x2(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}}
"""
PLAIN = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1; }'

Compiled = Callable[..., Path]


@pytest.fixture(scope="module")
def compiled(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """A shared library's object, as it is linked into one: ``compiled(CONVERTS, "120f")``."""
    folder = tmp_path_factory.mktemp("compiled")
    made: dict[tuple[str, ...], Path] = {}

    def get(source: str, *names: str) -> Path:
        key = (source, *names)
        if key not in made:
            made[key] = compile_cuda(toolchain, source, folder / f"{len(made)}.o", "-c", *targets(*names))
        return made[key]

    return get


def verdicts(found: BinaryReport) -> dict[Arch, str]:
    return {answer.gpu: answer.verdict.partition(",")[0] for answer in found.answers}


HARDWARE = "it converts in hardware"
ENCODER_LOADS = "software converts to FP4"
PLAIN_LOADS = "it loads"
OTHERS = "FP4 code that it has is for other GPUs"
NOTHING = "nothing loads"
EMPTY = "its fatbins have no kernel"
EMULATED = "FP4 is emulated or missing"


@pytest.mark.parametrize(
    ("source", "names", "on_120", "on_121", "says"),
    [
        (CONVERTS, ["120f"], HARDWARE, HARDWARE, "1 conversion to E2M1, in sm_120f"),
        (CONVERTS, ["120a"], HARDWARE, NOTHING, "none of 1 fatbin has code for sm_121: sm_120a"),
        (CONVERTS, ["120a", "compute_90"], HARDWARE, OTHERS, "compute_90 (JIT), which does"),
        (CONVERTS, ["compute_121a"], NOTHING, HARDWARE, "in compute_121a (JIT)"),
        (CONVERTS, ["120"], EMULATED, EMULATED, "1 kernel named for FP4 in sm_120"),
        (CONVERTS, ["100a"], NOTHING, NOTHING, "has code for sm_121: sm_100a"),
        (SOFTWARE, ["120"], ENCODER_LOADS, ENCODER_LOADS, "half_pair (2 values), in sm_120"),
        (PLAIN, ["120"], PLAIN_LOADS, PLAIN_LOADS, "no FP4 instruction"),
        ("__device__ int unused;", ["compute_80"], EMPTY, EMPTY, ""),  # a text without a kernel
    ],
)
def test_judges_by_what_each_gpu_loads(
    compiled: Compiled, source: str, names: list[str], on_120: str, on_121: str, says: str
) -> None:
    found = scan.examine(compiled(source, *names))
    assert verdicts(found) == {Arch(12, 0): on_120, GB10: on_121}
    assert says in found.answers[1].because
    for answer in found.answers:
        assert bool(answer.todo) == (not answer.verdict.startswith((HARDWARE, PLAIN_LOADS)))
        assert (answer.level is Level.RED) == answer.verdict.startswith((OTHERS, NOTHING, EMULATED))


def test_reads_libraries_inside_a_wheel_and_in_a_folder_alike(compiled: Compiled, tmp_path: Path) -> None:
    native, software = compiled(CONVERTS, "120f").read_bytes(), compiled(SOFTWARE, "120").read_bytes()
    wheel = wheel_of(tmp_path / "p-1-py3-none-any.whl", {"p/a.so": native, "p/b.so": software, "p/c.py": b"pass\n"})
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "a.so").write_bytes(native)
    (folder / "b.so").write_bytes(software)
    (folder / "link.so").symlink_to("a.so")
    packed, installed = scan.examine(wheel), scan.examine(folder)
    assert [file.name for file in packed.files] == ["p/a.so", "p/b.so"]
    assert [file.name for file in installed.files] == ["a.so", "b.so"]
    assert packed.answers == installed.answers
    assert verdicts(packed)[GB10] == ENCODER_LOADS
    assert "by hardware: 1 conversion to E2M1" in packed.answers[1].because


def test_a_name_in_a_wheel_cannot_add_a_line_or_steer_the_terminal(compiled: Compiled, tmp_path: Path) -> None:
    name = "p/x\nsm_121  NVFP4 native\x1b[2J\x1b]0;title\x07.so"
    wheel = wheel_of(tmp_path / "p-1-py3-none-any.whl", {name: compiled(CONVERTS, "120a").read_bytes()})
    said = text(scan.examine(wheel), details=True)
    assert "p/x\\nsm_121" in said
    assert "\x1b" not in said
    assert "\x07" not in said
    assert not [line for line in said.splitlines() if line.startswith("sm_121  NVFP4 native")]


def layered(path: Path, *layers: bytes) -> Path:
    names = [f"blobs/sha256/{number}" for number in range(len(layers))]
    manifest = json.dumps([{"RepoTags": ["x" * 1000], "Layers": names}]).encode()
    path.write_bytes(tar_of({**dict(zip(names, layers, strict=True)), "manifest.json": manifest}))
    return path


def entry(name: str, kind: bytes, target: str = "") -> bytes:
    """The bytes of a tar with one entry that is not a regular file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        archive.addfile(info)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "kind", "left"),
    [
        ("usr/a.so", tarfile.SYMTYPE, ["usr/lib/b.so"]),  # a link in the place of a file
        ("usr/a.so", tarfile.DIRTYPE, ["usr/lib/b.so"]),
        ("usr/lib", tarfile.SYMTYPE, ["usr/a.so"]),  # in the place of a directory
        ("usr/lib", tarfile.DIRTYPE, ["usr/a.so", "usr/lib/b.so"]),
        ("./usr//lib/.wh..wh..opq", tarfile.REGTYPE, ["usr/a.so"]),
        ("/usr/.wh.lib", tarfile.REGTYPE, ["usr/a.so"]),
        (".wh..wh..opq", tarfile.REGTYPE, []),
        ("usr/li", tarfile.SYMTYPE, ["usr/a.so", "usr/lib/b.so"]),
    ],
)
def test_what_takes_the_place_of_a_file_or_a_directory_hides_it(
    compiled: Compiled, tmp_path: Path, name: str, kind: bytes, left: list[str]
) -> None:
    native = compiled(CONVERTS, "120f").read_bytes()
    lower = tar_of({"usr/a.so": native, "usr/lib/b.so": native}, "w:gz")
    found = scan.examine(layered(tmp_path / "image.tar", lower, entry(name, kind, "elsewhere")))
    assert [file.name for file in found.files] == left


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_refuses_what_is_no_code(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("text")
    for path, says in ((tmp_path / "x.txt", "is not a wheel"), (tmp_path, "holds no")):
        with pytest.raises(BinaryError, match=says) as error:
            scan.examine(path)
        assert error.value.help


def test_refuses_a_wheel_made_to_exhaust_the_machine(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb-1-py3-none-any.whl"
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("b.so", "w") as member,
    ):
        member.write(b"\x7fELF")
        for _ in range(300):
            member.write(bytes(1 << 20))
    with pytest.raises(BinaryError, match="claims 314572804 bytes"):
        scan.examine(bomb)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damage_anywhere_in_a_wheel_is_one_sentence(compiled: Compiled, tmp_path: Path, method: int) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("p/\u00e4.so", compiled(CONVERTS, "120f").read_bytes())
    path = tmp_path / "p-1-py3-none-any.whl"
    assert damaged(whole.getvalue(), path)
    path.write_bytes(whole.getvalue()[: whole.tell() // 2])
    with pytest.raises(BinaryError, match="is damaged") as error:
        scan.examine(path)
    assert error.value.help


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_damage_anywhere_in_a_tar_is_one_sentence(
    compiled: Compiled, tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    library = compiled(CONVERTS, "120f").read_bytes()
    layer = compress(tar_of({"a.so": library}))
    assert damaged(compress(tar_of({"layer.tar": layer})), tmp_path / "image.tar")


def damaged(whole: bytes, path: Path) -> int:
    """Return how many of some hundred damages were noticed; every exception other than ours fails the test."""
    chance, errors = random.Random(7), 0
    for number in range(250):
        content = bytearray(whole)
        at = chance.randrange(min(len(content), 600) if number % 2 else len(content))
        content[at] = chance.choice((0, 0x80, 0xFF, content[at] ^ 1 << chance.randrange(8)))
        path.write_bytes(content)
        try:
            scan.examine(path)
        except BinaryError:
            errors += 1
    return errors


def test_a_cubin_made_to_take_hours_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    """Hundreds of its sections are one and the same place."""
    cubin = compile_cuda(toolchain, CONVERTS, tmp_path / "x.cubin", "-cubin", "-arch=sm_121a")
    data = bytearray(cubin.read_bytes())
    table, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    rows = [data[table + 64 * n : table + 64 * (n + 1)] for n in range(count)]
    code = next(row for row in rows if struct.unpack_from("<Q", row, 8)[0] & 4)
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<H", data, 0x3C, count + 500)
    cubin.write_bytes(data + b"".join(rows) + code * 500)
    with pytest.raises(BinaryError, match="tables do not fit"):
        scan.examine(cubin)


def test_ptx_that_begins_the_same_again_and_again_takes_no_longer_than_other() -> None:
    began = time.process_time()
    assert not device_code.scan_ptx(b"e2m1" + b"mma." * 100_000 + b"tcgen05.mma." * 40_000).matrix
    assert time.process_time() - began < 10  # some minutes, when each beginning was followed to the end
    both = b"mma.sync.aligned.kind::mxf4nvf4.block_scale.m16n8k64.e2m1.e2m1 tcgen05.mma.cta_group::1.kind::mxf4"
    assert device_code.scan_ptx(both).matrix == 2


# --- what is not green -----------------------------------------------------------------------------------------------


def text(found: BinaryReport, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=400)
    console.print(compiled_text(found, details=details))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(("source", "archs"), [(PLAIN, ["90"]), (PLAIN, ["100f"]), (PLAIN, ["80", "90a"])])
def test_code_of_which_nothing_loads_is_red(compiled: Compiled, source: str, archs: list[str]) -> None:
    found = scan.examine(compiled(source, *archs))
    assert verdicts(found) == dict.fromkeys(GPUS, NOTHING)
    assert Level.RED in found.levels
    assert all("sm_120f" in verdict.todo for verdict in found.answers)
    by_driver = scan.examine(compiled(source, *archs, "compute_90"))
    assert verdicts(by_driver)[GB10] == "it loads by the driver's compiler alone"


def test_one_damaged_library_does_not_lose_the_report_of_the_others(compiled: Compiled, tmp_path: Path) -> None:
    good, cut = compiled(CONVERTS, "120f").read_bytes(), compiled(SOFTWARE, "120").read_bytes()[:-100]
    (tmp_path / "folder").mkdir()
    for name, content in {"a.so": good, "b.so": cut, "c.so": good}.items():
        (tmp_path / "folder" / name).write_bytes(content)
    members = {"a.so": good, "b.so": cut, "c.so": good}
    wheel = wheel_of(tmp_path / "p-1-py3-none-any.whl", members)
    image = tmp_path / "image.tar"
    layer = {"blobs/sha256/aa": tar_of(members), "manifest.json": b'[{"Layers": ["blobs/sha256/aa"]}]'}
    image.write_bytes(tar_of(layer))
    for path in (tmp_path / "folder", wheel, image):
        found = scan.examine(path)
        assert [file.name for file in found.files] == ["a.so", "c.so"]
        assert [one.name for one in found.unread] == ["b.so"]
        assert "b.so is damaged" in found.unread[0].because
        assert found.unread[0].help
        assert Level.RED in found.levels
        assert verdicts(found)[GB10] == HARDWARE
        assert "not read: b.so" in text(found)


@pytest.mark.parametrize(
    ("name", "content", "red"),
    [
        ("b.so", b"", True),
        ("b.so.1", bytes(5000), True),
        ("b.so", b"version https://git-lfs.github.com/spec/v1\n", True),
        ("b.cubin", b"version https://git-lfs.github.com/spec/v1\n", True),
        ("b.fatbin", b"\x00\x01", True),
        ("libcuda.so.1", b"", False),  # a mount point
        ("b.so", b"/* GNU ld script */ INPUT(a.so)", False),
        ("b.txt.so.py", b"", False),
    ],
)
def test_a_library_without_contents_is_red(
    compiled: Compiled, tmp_path: Path, name: str, content: bytes, red: bool
) -> None:
    members = {"p/a.so": compiled(CONVERTS, "120f").read_bytes(), f"p/{name}": content}
    (tmp_path / "p").mkdir()
    for place, data in members.items():
        (tmp_path / place).write_bytes(data)
    wheel = wheel_of(tmp_path / "p-1-py3-none-any.whl", members)
    image = layered(tmp_path / "image.tar", tar_of(members), entry("p/link.so", tarfile.SYMTYPE, "a.so"))
    gone = layered(tmp_path / "gone.tar", tar_of(members), tar_of({f"p/.wh.{name}": b""}))
    for path in (tmp_path / "p", wheel, image):
        found = scan.examine(path)
        assert (Level.RED in found.levels) is red
        assert [Path(one.name).name for one in found.unread] == [name] * red
    assert Level.RED not in scan.examine(gone).levels


def test_a_member_that_a_wheel_cannot_unpack_does_not_lose_the_others(compiled: Compiled, tmp_path: Path) -> None:
    good = compiled(CONVERTS, "120f").read_bytes()
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("p/a.so", good)
        archive.writestr("p/b.so", good)
    packed = bytearray(wheel.read_bytes())
    packed[packed.index(b"p/a.so") + 300] ^= 0xFF  # its checksum is wrong
    wheel.write_bytes(packed)
    found = scan.examine(wheel)
    assert ([file.name for file in found.files], [one.name for one in found.unread]) == (["p/b.so"], ["p/a.so"])


def test_a_layer_that_is_not_there_is_not_green(compiled: Compiled, tmp_path: Path) -> None:
    manifest = json.dumps([{"Layers": ["blobs/sha256/aa", "blobs/sha256/bb", "blobs/sha256/cc"]}]).encode()
    layer = tar_of({"a.so": compiled(CONVERTS, "120f").read_bytes()})
    image = tmp_path / "image.tar"
    image.write_bytes(tar_of({"blobs/sha256/aa": layer, "blobs/sha256/cc": bytes(1024), "manifest.json": manifest}))
    found = scan.examine(image)
    assert "blobs/sha256/bb" in found.unread[0].because
    assert (Level.RED in found.levels, len(found.unread), len(found.files)) == (True, 1, 1)
    image.write_bytes(tar_of({"blobs/sha256/aa": layer, "manifest.json": b"[7]"}))
    with pytest.raises(BinaryError, match="manifest is damaged"):
        scan.examine(image)


def test_archives_of_a_directory_are_read_and_what_is_packed_in_them_once_more_is_not(
    compiled: Compiled, tmp_path: Path
) -> None:
    """No program loads code from there."""
    library = compiled(CONVERTS, "120a").read_bytes()
    (tmp_path / "p").mkdir()
    inner = wheel_of(tmp_path / "p/x.whl", {"x.so": library}).read_bytes()
    (tmp_path / "p/y.tar").write_bytes(tar_of({"x.whl": inner, "a.so": library}))
    assert [file.name for file in scan.examine(tmp_path / "p").files] == ["x.whl!x.so", "y.tar!a.so"]


def test_no_device_code_is_no_green_verdict(tmp_path: Path) -> None:
    found = scan.examine(wheel_of(tmp_path / "p-1-py3-none-any.whl", {"p/a.py": b"pass\n"}))
    assert {verdict.level for verdict in found.answers} == {Level.NONE}


# --- kernels that lost their instruction -----------------------------------------------------------------------------

KEEPS = CONVERTS.replace("nvfp4_quantize", "keeps")


PRINTS = "#define PRINTS 1\n"


@pytest.mark.parametrize(
    ("define", "idle", "says"),
    [
        ("", Idle.UNREAD, "1 store constants"),
        (PRINTS, Idle.EMPTY, "1 do nothing, or print"),
    ],
)
def test_a_kernel_that_converts_on_sm_100_alone_is_named(
    compiled: Compiled, tmp_path: Path, define: str, idle: Idle | None, says: str
) -> None:
    (tmp_path / "a.so").write_bytes(compiled(define + LOSES, "100a", "120f").read_bytes())
    (tmp_path / "b.so").write_bytes(compiled(KEEPS, "100a", "120f").read_bytes())
    found = scan.examine(tmp_path)
    for verdict in found.answers:
        assert (verdict.axis, verdict.level) == (Axis.CONVERTS, Level.YELLOW)
        assert "1 kernel (scale): 1 without the conversions to E2M1 of sm_100a" in verdict.verdict
        assert says in verdict.verdict
        assert verdict.todo
    (lost,) = lost_of(found)
    assert cli.run(["doctor", "--require", "sm_121:native", str(tmp_path)]) == 1
    assert (lost.name, lost.held_by, dict(lost.lost), lost.idle) == ("scale", "sm_100a", {"nearest": 1}, idle)


def lost_of(found: BinaryReport) -> list[LostKernel]:
    return [kernel for file in found.files for row in file.loading if row.gpu == GB10 for kernel in row.lost]


STOCHASTIC = """
#ifndef NAME
#define NAME round_randomly
#endif
namespace transformer_engine {
__global__ void NAME(const float* in, unsigned short* out) {
#if __CUDA_ARCH__ < 1200
  asm("cvt.rs.satfinite.e2m1x4.f32 %0, {%1, %2, %3, %4}, %5;"
      : "=h"(out[threadIdx.x]) : "f"(in[0]), "f"(in[1]), "f"(in[2]), "f"(in[3]), "r"(threadIdx.x));
#elif defined(NEAREST)
  asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; cvt.u16.u8 %0, b;}"
      : "=h"(out[threadIdx.x]) : "f"(in[0]), "f"(in[1]));
#else
  out[threadIdx.x] = 0;
#endif
}
}
"""


def test_a_kernel_in_the_list_of_reasons_is_as_it_should_be_and_named(compiled: Compiled) -> None:
    nearest = "#define NEAREST 1\n" + STOCHASTIC + MULTIPLIES
    found = scan.examine(compiled(nearest, "100a", "120f"))
    assert [verdict.level for verdict in found.answers] == [Level.GREEN, Level.GREEN]
    assert "by design: TransformerEngine rounds stochastically in software" in found.answers[0].because
    other = nearest.replace("namespace transformer_engine", "namespace other")
    assert scan.examine(compiled(other, "100a", "120f")).answers[0].level is Level.YELLOW


# --- requirements ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "required", "reasons"),
    [
        (["120f"], ["sm_120", "sm_121:native"], [[], []]),
        (["120"], ["sm_121"], [[]]),
        (["120"], ["sm_121:native"], [["fatbins with kernels named for FP4", "no file has FP4"]]),
        (["120a"], ["sm_120:native", "sm_121"], [[], ["nothing loads"]]),
        (["compute_121a"], ["sm_121:native"], [[]]),
    ],
)
def test_a_requirement_is_met_by_every_file_or_says_why_not(
    compiled: Compiled, names: list[str], required: list[str], reasons: list[list[str]]
) -> None:
    path = compiled(CONVERTS, *names)
    found = verb.examine_binary(path, path.name, verb.question((), None, None, required), on_step=lambda _: None)
    assert [row.met for row in found.requirements] == [not row for row in reasons]
    for row, expected in zip(found.requirements, reasons, strict=True):
        assert len(row.because) == len(expected)
        assert all(words in reason for words, reason in zip(expected, row.because, strict=True))
    assert cli.run(["doctor", str(path), *(f"--require={one}" for one in required)]) == any(reasons)


@pytest.mark.parametrize("what", ["", ":native", ":variant=turbo"])
def test_a_file_without_code_meets_no_requirement(tmp_path: Path, what: str) -> None:
    empty = wheel_of(tmp_path / "p-1-py3-none-any.whl", {"p/a.py": b"pass\n"})
    assert cli.run(["doctor", str(empty), "--require", f"sm_121{what}"]) == 1


@pytest.mark.parametrize(
    ("source", "name", "variant", "wrong"),
    [
        (CONVERTS, "120f", "next3", ""),
        (CONVERTS, "120a", "next3", "nothing loads"),
        (CONVERTS, "compute_121a", "native", ""),
        (SOFTWARE, "121a", "native", "native does not convert in software for sm_121a"),
        (SOFTWARE, "compute_121a", "next3", "a build of next3 has FP4 code for sm_121"),
        (SOFTWARE, "121", "next3", ""),
        (SOFTWARE, "121a", "turbo", ""),
        (SOFTWARE, "120f", "next2", "next2 does not convert in software for sm_120f"),
        (PLAIN, "120f", "turbo", "a build of turbo has FP4 code for sm_121"),
    ],
)
def test_a_requirement_can_be_what_builds_of_a_variant_have(
    compiled: Compiled, source: str, name: str, variant: str, wrong: str
) -> None:
    path = compiled(source, name)
    asked = verb.question((), None, None, [f"sm_121:variant={variant}"])
    (row,) = verb.examine_binary(path, path.name, asked, on_step=lambda _: None).requirements
    assert row.met == (not wrong)
    assert wrong in "; ".join(row.because)
    assert cli.run(["doctor", f"--require=sm_121:variant={variant}", str(path)]) == bool(wrong)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--require", "sm_121:fast", "x.whl"],
        ["--require", "sm_121:native:variant=next3", "x.whl"],
        ["--require", "sm_121:except=", "x.whl"],
        ["--require", "sm_121:variant=next9", "x.whl"],
        ["--require", "sm_999", "x.whl"],
        ["--require", "sm_121"],
    ],
)
def test_a_requirement_that_cannot_be_asked_is_a_usage_error(arguments: list[str]) -> None:
    assert cli.run(["doctor", *arguments]) == 2


# --- code that the driver compiles -----------------------------------------------------------------------------------


def test_units_that_load_from_ptx_are_named_with_their_version_and_driver(compiled: Compiled) -> None:
    path = compiled(PLAIN, "90", "compute_90")
    found = scan.examine(path, gpus=[Arch(9, 0), GB10])
    isa = found.files[0].loading[1].isa
    assert [(row.gpu, row.loads) for row in found.files[0].loading if row.isa] == [(GB10, "compute_90 (JIT)")]
    assert Version(isa) >= Version("9.0")
    cuda = f"1{int(isa[0]) - 6}.{isa[2:]}"
    said = found.answers[1].because
    assert f"compute_90, PTX {isa}" in said
    assert f"requires a driver for CUDA {cuda}" in said
    assert "PTX" not in found.answers[0].because


NAMED = """
namespace {0} {{ struct Fp4 {{}}; template <class T> __global__ void grid(float* x) {{ x[threadIdx.x] += 1; }} }}
template __global__ void {0}::grid<{0}::Fp4>(float* x);
"""


def test_fatbins_without_a_kernel_and_code_for_the_linker_are_not_missed(compiled: Compiled, tmp_path: Path) -> None:
    nothing, code = compiled("int none() { return 1; }", "80", "90"), compiled(PLAIN, "120f")
    (tmp_path / "both.o").write_bytes(code.read_bytes() + nothing.read_bytes())
    for answer in scan.examine(tmp_path / "both.o").answers:
        assert (answer.verdict.partition(",")[0], answer.excepted) == (PLAIN_LOADS, ())
    alone = scan.examine(nothing)
    assert [answer.level for answer in alone.answers] == [Level.NONE, Level.NONE]
    assert "no kernel" in alone.answers[0].verdict
    # A kernel for older GPUs alone is missed.
    older = compiled(PLAIN, "80")
    (tmp_path / "older.o").write_bytes(code.read_bytes() + older.read_bytes())
    assert "nothing loads of 1 of 2 fatbins" in scan.examine(tmp_path / "older.o").answers[0].because


def test_code_for_the_linker_alone_is_not_judged(toolchain: Toolchain, tmp_path: Path) -> None:
    flag = "-gencode=arch=compute_90,code=lto_90"
    made = compile_cuda(toolchain, PLAIN, tmp_path / "a.o", "-dc", flag)
    (answer,) = scan.examine(made, gpus=[GB10]).answers
    assert (answer.level, "LTO-IR" in answer.verdict) == (Level.NONE, True)


@pytest.mark.parametrize(("name", "verdict"), [("nanovdb", PLAIN_LOADS), ("mine", EMULATED)])
@pytest.mark.parametrize("target", ["120f", "compute_80"])
def test_nanovdbs_codec_is_no_fp4(compiled: Compiled, name: str, verdict: str, target: str) -> None:
    assert set(verdicts(scan.examine(compiled(NAMED.format(name), target))).values()) <= {
        verdict,
        "it loads by the driver's compiler alone",
    }


def test_an_older_target_has_no_suffix(toolchain: Toolchain, tmp_path: Path) -> None:
    cubin = compile_cuda(toolchain, PLAIN, tmp_path / "a.cubin", "-cubin", "-arch=sm_80")
    stripped = cubin.read_bytes().replace(b"sm_80", b"xx_80")
    (tmp_path / "b.cubin").write_bytes(stripped)
    assert [group.arch for group in scan.examine(tmp_path / "b.cubin").files[0].images] == ["sm_80"]


@pytest.mark.parametrize("compression", ["xz", "gzip", "zstd", "none"])
def test_a_package_of_debian_is_read(compiled: Compiled, tmp_path: Path, compression: str) -> None:
    library = tmp_path / "root/usr/lib/libk.so"
    (tmp_path / "root/DEBIAN").mkdir(parents=True)
    control = "Package: k\nVersion: 1\nArchitecture: arm64\nMaintainer: a <a@b.c>\nDescription: k\n"
    (tmp_path / "root/DEBIAN/control").write_text(control)
    library.parent.mkdir(parents=True)
    library.write_bytes(compiled(CONVERTS, "120f").read_bytes())
    build = ["dpkg-deb", f"-Z{compression}", "--root-owner-group", "--build", "root", "k.deb"]
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb makes the package, and is not here")
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    found = scan.examine(tmp_path / "k.deb")
    assert [file.name for file in found.files] == ["usr/lib/libk.so"]
    assert set(verdicts(found).values()) == {HARDWARE}
    (tmp_path / "cut.deb").write_bytes((tmp_path / "k.deb").read_bytes()[:200])
    with pytest.raises(BinaryError):
        scan.examine(tmp_path / "cut.deb")


def test_a_package_of_conda_is_read(compiled: Compiled, tmp_path: Path) -> None:
    inner = tar_of({"lib/libk.so": compiled(CONVERTS, "120f").read_bytes()})
    packed = zstandard.ZstdCompressor().compress(inner)
    with zipfile.ZipFile(tmp_path / "k-1-0.conda", "w") as made:
        made.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
        made.writestr("pkg-k-1-0.tar.zst", packed)
        made.writestr("info-k-1-0.tar.zst", zstandard.ZstdCompressor().compress(tar_of({"info/index.json": b"{}"})))
    found = scan.examine(tmp_path / "k-1-0.conda")
    assert [file.name for file in found.files] == ["lib/libk.so"]
    assert set(verdicts(found).values()) == {HARDWARE}


def test_sources_count_that_are_about_fp4_and_headers_where_there_is_no_code(
    compiled: Compiled, tmp_path: Path
) -> None:
    root = tmp_path / "package"
    (root / "include").mkdir(parents=True)
    (root / "template.cu").write_text(PLAIN)
    (root / "include/gemm.cuh").write_text(PLAIN)
    with pytest.raises(BinaryError, match="no compiled code"):  # a PyTorch without CUDA has no more
        scan.examine(root)
    (root / "lib.so").write_bytes(b"\x7fELF" + bytes(600))
    (root / "include/gemm.cuh").write_text(CONVERTS)
    assert "1 CUDA source when it runs" in scan.examine(root).answers[0].verdict
    (root / "lib.so").write_bytes(compiled(PLAIN, "120f").read_bytes())
    assert scan.examine(root).sources == 0
    (root / "quantize.cu").write_text(CONVERTS)
    assert scan.examine(root).sources == 1
