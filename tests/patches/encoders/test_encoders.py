"""Each encoder alone, pasted twice, and all together; its machine code; and its packings against its single value."""

import subprocess
from pathlib import Path

import pytest
from cubins import compile_cuda, disassembled
from remembered import remembered

from fp4patch.core.arch import Arch
from fp4patch.proof import machine_code
from fp4patch.proof.listing import SassListing
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.instruction import InstructionClass

FOLDER = Path(__file__).parents[3] / "encoders"
ENCODERS = sorted(FOLDER.glob("*.cuh"))
NAMES = ["half_pair", "predicate_sum", "threshold"]
"""Those that round to nearest. ``test_stochastic.py`` has the other."""
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]


def host(tmp_path: Path, text: str, *flags: str) -> str:
    """Compile for the host, and run if there is something to run: what it wrote."""
    runs = "int main" in text
    command = ["g++", *STRICT, *flags, "source.cpp", *(["-o", "program"] if runs else ["-fsyntax-only"])]

    def written() -> str:
        (tmp_path / "source.cpp").write_text(text)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout if runs else ""

    return remembered((*command, text), written)


def kernel(name: str) -> str:
    """Eight values of a thread."""
    return (
        (FOLDER / f"{name}.cuh").read_text()
        + f"""
extern "C" __global__ void probe(const float4* in, unsigned int* out) {{
  const unsigned int at = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 a = in[2 * at], b = in[2 * at + 1];
  out[at] = fp4patch_{name}::e2m1_x8(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
}}
"""
    )


def listing(tmp_path: Path, toolchain: Toolchain, text: str, arch: str) -> SassListing:
    flags = ("-cubin", f"-arch={arch}", "-Werror=all-warnings")
    cubin = compile_cuda(toolchain, text, tmp_path / "source.cubin", *flags).read_bytes()
    printed = disassembled(toolchain, cubin)
    return machine_code.unit_listing(printed, cubin)


@pytest.mark.parametrize("path", ENCODERS, ids=lambda path: path.stem)
def test_compiles_alone_with_every_warning_and_includes_nothing(path: Path, tmp_path: Path) -> None:
    assert "#include" not in path.read_text()
    host(tmp_path, path.read_text())


def test_all_of_them_twice_in_one_unit_leave_no_macro_but_their_guards(tmp_path: Path) -> None:
    host(tmp_path, "".join(path.read_text() for path in ENCODERS * 2))
    source = tmp_path / "all.cpp"
    source.write_text("".join(path.read_text() for path in ENCODERS * 2))

    def macros(*inputs: str) -> set[str]:
        done = subprocess.run(["g++", "-dM", "-E", "-x", "c++", *inputs], capture_output=True, text=True, check=True)
        return {line.split()[1] for line in done.stdout.splitlines()}

    assert macros(str(source)) - macros("/dev/null") == {f"FP4PATCH_{path.stem.upper()}_CUH" for path in ENCODERS}


@pytest.mark.parametrize("name", NAMES)
def test_every_packing_on_the_host_is_the_single_values_in_order(name: str, tmp_path: Path) -> None:
    checks = []
    for count in (2, 4, 8, 16):
        arguments = ", ".join(f"v[{i}]" for i in range(count))
        checks.append(f"bad += fp4patch_{name}::e2m1_x{count}({arguments}) != expected({count}, v);")
    program = f"""
#include <cstdio>
{(FOLDER / f"{name}.cuh").read_text()}
static unsigned long long expected(int count, const float* v) {{
  unsigned long long word = 0;
  for (int i = 0; i < count; ++i) word |= static_cast<unsigned long long>(fp4patch_{name}::e2m1(v[i])) << 4 * i;
  return word;
}}
int main() {{
  unsigned int state = 1;
  int bad = 0;
  for (int round = 0; round < 100000; ++round) {{
    float v[16];
    for (float& x : v) {{
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(static_cast<int>(state)) * 0x1p-28f;
    }}
    {" ".join(checks)}
  }}
  const float all[] = {{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6}};
  std::printf("%d %llx\\n", bad, fp4patch_{name}::e2m1_x16({", ".join(f"all[{i}]" for i in range(16))}));
}}
"""
    assert host(tmp_path, program) == "0 fedcba9876543210\n"


@pytest.mark.parametrize("pair", ["__half2", "__nv_bfloat162"])
@pytest.mark.parametrize("name", NAMES)
def test_all_halves_and_bfloats_give_what_their_floats_give(
    name: str, pair: str, tmp_path: Path, toolchain: Toolchain
) -> None:
    # The header precedes the types that it takes, as it may after pasting.
    program = f"""// with the headers of {toolchain.info.nvcc}, {toolchain.fingerprint}
{(FOLDER / f"{name}.cuh").read_text()}
#include <cstdio>
#include <cstring>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
int main() {{
  namespace e = fp4patch_{name};
  int bad = 0;
  for (unsigned int i = 0; i < 65536; ++i) {{
    const unsigned int bits = i << 16 | ((i * 40503u) & 0xffffu);
    {pair} p;
    static_assert(sizeof p == sizeof bits, "");
    std::memcpy(static_cast<void*>(&p), &bits, sizeof p);
    const float a = __low2float(p), b = __high2float(p);
    bad += e::e2m1_x2(p) != e::e2m1_x2(a, b);
    bad += e::e2m1_x4(p, p) != e::e2m1_x4(a, b, a, b);
    bad += e::e2m1_x8(p, p, p, p) != e::e2m1_x8(a, b, a, b, a, b, a, b);
    bad += e::e2m1_x16(p, p, p, p, p, p, p, p) != e::e2m1_x16(a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b);
  }}
  std::printf("%d\\n", bad);
}}
"""
    assert host(tmp_path, program, "-isystem", str(toolchain.root / "include")) == "0\n"


def free_of_what_no_encoder_may_have(code: SassListing) -> bool:
    kinds = (InstructionClass.BRANCH, InstructionClass.LOCAL, InstructionClass.F64, InstructionClass.FP4)
    return not any(code.count(kind) for kind in kinds)


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_120", "sm_121a"])
def test_half_pair_has_no_branch_no_local_memory_and_no_e2m1_instruction(
    arch: str, tmp_path: Path, toolchain: Toolchain
) -> None:
    code = listing(tmp_path, toolchain, kernel("half_pair"), arch)
    assert free_of_what_no_encoder_may_have(code)
    if Arch.parse(arch) >= Arch.parse("sm_86"):
        assert code.size <= 43  # 28 of them encode; CUDA 13.0.88


def test_of_the_others_threshold_is_the_one_that_branches(tmp_path: Path, toolchain: Toolchain) -> None:
    assert free_of_what_no_encoder_may_have(listing(tmp_path, toolchain, kernel("predicate_sum"), "sm_121a"))
    # Published as branch-free; with CUDA 13 it is not. Were this to change, the documentation must.
    assert listing(tmp_path, toolchain, kernel("threshold"), "sm_121a").count(InstructionClass.BRANCH) > 0
