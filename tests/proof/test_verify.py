"""Verify on small trees, with the real compiler and disassembler."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from processes import alive, wait_for
from verified import TARGET, Verified, subject, verified

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Rule
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.progress import Step
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof.result import ProbeResult
from fp4patch.proof.subject import Means, Probes
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side, SourceView
from fp4patch.sass.instruction import InstructionClass

A120, A121 = Arch(12, 0, "a"), Arch(12, 1, "a")
# The header includes its sibling: a patched sibling must not reach the pristine side.
LIB = '#include "detail/scale.h"\n__device__ inline float scaled(float x) { return scale(x); }\n'
PRISTINE = "__device__ inline float scale(float x) { return x * 3.0f; }\n"
PATCHED = """\
__device__ inline float scale(float x) {
#if __CUDA_ARCH__ == 1210
  return x < 1.0f ? sqrtf(x) : x;
#else
  return x * 3.0f;
#endif
}
"""
SCALE = "include/detail/scale.h"
KERNEL = 'extern "C" __global__ void probe(float* x) { x[threadIdx.x] = scaled(x[threadIdx.x]); }\n'
IDENTICAL = Rule(probes=("lib/*",), arch=("sm_120a",), because="not its target", identical=True)
SOFTWARE = Rule(probes=("lib/*",), arch=("sm_121a",), because="the patch is for it", requires=("^MUFU",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose sibling header was patched by hand."""
    root = tmp_path / "tree"
    write(root, {"include/lib.h": LIB, SCALE: PATCHED})
    return root


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


class Bench:
    """A tree, its pristine bytes and one probe, ready to be verified."""

    def __init__(self, tree: Path, toolchain: Toolchain, folder: Path) -> None:
        self.tree = tree
        self.toolchain = toolchain
        self.folder = folder
        self.pristine: dict[str, bytes | None] = {SCALE: PRISTINE.encode()}
        self.rules = [IDENTICAL, SOFTWARE]
        self.source = KERNEL
        self.kind = ProbeKind.SASS
        self.settings: dict[str, Any] = {}
        self.headers: dict[str, list[Path]] = {}
        self.progress: list[Step] = []
        self.cache = cache_dir() / "compilations"
        """The user's, if a run names no other: the same probe is compiled in many of these tests."""

    def probe(self) -> Probe:
        return Probe(name="scale", title="scale", source="probe.cu", kind=self.kind, patch="lib/guard", **self.settings)

    def run(self, *archs: Arch, cache: Path | None = None) -> Verified:
        source = self.folder / "probe.cu"
        source.write_text('#include "lib.h"\n' + self.source)
        self.progress.clear()
        looked_at = subject(
            SourceView(self.tree, self.pristine),
            Probes(ran=[(self.probe(), source)], archs=archs),
            self.rules,
            self.toolchain,
            self.headers,
        )
        means = Means(store=Store(cache or self.cache), jobs=2, progress=self.progress.append)
        return verified(looked_at, means)

    def one(self, arch: Arch, cache: Path | None = None) -> ProbeResult:
        (result,) = self.run(arch, cache=cache).results
        return result


@pytest.fixture
def bench(tree: Path, toolchain: Toolchain, tmp_path: Path) -> Bench:
    return Bench(tree, toolchain, tmp_path)


def test_the_patch_is_seen_on_its_target_and_nowhere_else(bench: Bench) -> None:
    bench.cache = bench.folder / "cache"
    verification = bench.run(A120, A121)
    assert verification.problems == ()
    on_120, on_121 = verification.results
    assert (on_120.verdict, on_121.verdict) == (Verdict.PASS, Verdict.PASS)
    assert (on_120.identical, on_121.identical) == (True, False)
    assert on_121.before is not None
    assert on_121.after is not None
    # The pristine side is pristine although the sibling, not the header that probes include, was patched.
    assert not [i for i in on_121.before.instructions if i.opcode.startswith("MUFU")]
    assert on_121.after.count(InstructionClass.MEMORY) >= 2
    assert [(p.done, p.total) for p in bench.progress] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert {p.what for p in bench.progress[1:]} == {
        f"compiling lib/scale {arch} {side}" for arch in (A120, A121) for side in ("pristine", "patched")
    }


def test_a_file_that_the_patch_made_is_not_in_the_pristine_view(bench: Bench, tree: Path) -> None:
    write(tree, {"include/extra.h": "#define EXTRA __nanosleep(1)\n"})
    bench.pristine["include/extra.h"] = None
    bench.source = '#if __has_include("extra.h")\n#include "extra.h"\n#else\n#define EXTRA\n#endif\n' + KERNEL.replace(
        "{ x[", "{ EXTRA; x["
    )
    result = bench.one(A121)
    assert result.before is not None
    assert result.after is not None
    assert "NANOSLEEP" not in {i.opcode for i in result.before.instructions}
    assert "NANOSLEEP" in {i.opcode for i in result.after.instructions}


def test_an_unchanged_verify_runs_no_compiler(bench: Bench, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = bench.run(A120, A121, cache=cache)
    broken = tmp_path / "nothing"
    bench.toolchain = replace(bench.toolchain, nvcc=broken, nvdisasm=broken)
    second = bench.run(A120, A121, cache=cache)
    assert [replace(result, cached=False) for result in second.results] == list(first.results)
    assert second.compiled.lines == first.compiled.lines
    assert all(result.cached for result in second.results)
    bench.tree = bench.tree.rename(tmp_path / "moved")
    assert bench.one(A121, cache).cached


def test_a_probe_and_what_it_includes_are_the_same_in_another_copy_of_the_data(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = []
    for copy, value in (("a", "1"), ("b", "1"), ("c", "2")):
        data = tmp_path / copy
        write(data, {"encoders/shared.cuh": f"#define VALUE {value}\n", "patches/lib/guard/probes/probe.cu": ""})
        monkeypatch.setenv("FP4PATCH_DATA", str(data))
        bench.folder, bench.source = data / "patches/lib/guard/probes", f'#include "{UP}encoders/shared.cuh"\n{KERNEL}'
        cached.append(bench.one(A120, cache=tmp_path / "cache").cached)
    assert cached == [False, True, False]


UP = "../" * 4


def test_the_lines_that_became_code_are_those_of_the_target(bench: Bench) -> None:
    software, other = PATCHED.splitlines().index("  return x < 1.0f ? sqrtf(x) : x;") + 1, 5
    lines = bench.run(A120, A121).compiled.lines
    found = {arch: lines["lib/scale", arch].code["probe"][SCALE] for arch in (A120, A121)}
    assert found == {A120: [other], A121: [software]}
    assert not lines["lib/scale", A120].reads(SCALE, [range(software, software + 1)])


def test_a_changed_header_is_compiled_again(bench: Bench, tree: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert bench.one(A121, cache).verdict is Verdict.PASS
    write(tree, {SCALE: PATCHED.replace("sqrtf(x)", "x + 1.0f")})
    again = bench.one(A121, cache)
    assert not again.cached
    assert again.verdict is Verdict.FAIL
    write(tree, {SCALE: PATCHED})
    assert bench.one(A121, cache).cached


def test_a_tree_that_changes_later_is_compiled_as_it_was_read(tree: Path, tmp_path: Path) -> None:
    side = Side(SourceView(tree, {"include/more.h": b""}), TARGET, tmp_path / "copy")
    write(tree, {SCALE: PRISTINE})
    assert (side.folder() / SCALE).read_text() == PATCHED
    assert (side.folder() / "include/more.h").exists()


def test_links_that_lead_nowhere_or_back_and_pipes_are_no_hindrance(bench: Bench, tree: Path) -> None:
    bench.cache = bench.folder / "cache"
    (tree / "include/back").symlink_to("..")
    (tree / "include/detail/other").symlink_to("../other", target_is_directory=True)
    (tree / "include/other").mkdir()
    (tree / "include/other/detail").symlink_to("../detail", target_is_directory=True)
    (tree / "include/nowhere.h").symlink_to("/nowhere/at/all")
    os.mkfifo(tree / "include/pipe")
    assert bench.one(A121).verdict is Verdict.PASS


def test_a_full_disk_is_said_with_the_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.cache = bench.folder / "cache"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ProofError, match=r"cannot be copied to .*: .*No space left on device") as caught:
        bench.run(A121)
    assert "TMPDIR" in caught.value.help


def test_a_probe_that_no_longer_compiles_fails_with_the_compilers_words(bench: Bench, tree: Path) -> None:
    write(tree, {SCALE: PATCHED.replace("sqrtf", "frobf")})
    result = bench.one(A121)
    assert result.verdict is Verdict.FAIL
    assert '"frobf" is undefined' in result.error
    assert str(tree) in result.error
    assert result.checks[0].detail == "no, though the pristine source does"
    assert result.before is not None
    assert result.after is None
    write(tree, {SCALE: PATCHED})
    warned = "".join(f"__device__ void f{n}() {{ int unused; }}\n" for n in range(100))  # longer than what is kept
    bench.source = f"{warned}int never = not_this_way;\n"
    result = bench.one(A121)
    assert "not_this_way" in result.error
    assert result.checks[0].detail == "no, and the pristine source neither"


def test_a_static_assert_that_fails_is_remembered_unless_its_message_names_the_tree(bench: Bench, tree: Path) -> None:
    cache = bench.cache = bench.folder / "cache"
    bench.source = f"{KERNEL}static_assert(sizeof(int) == 8);\n"
    first, good = bench.one(A121), bench.toolchain
    assert first.error.startswith("probe.cu(")
    bench.toolchain = replace(good, nvcc=bench.folder / "nothing")
    assert replace(bench.one(A121, cache), cached=False) == first
    bench.toolchain = good
    write(tree, {SCALE: f"{PATCHED}static_assert(sizeof(int) == 8);\n"})
    assert str(tree) in bench.one(A121, cache).error
    bench.toolchain = replace(good, nvcc=bench.folder / "nothing")
    with pytest.raises(ProofError, match="does not run"):
        bench.one(A121, cache)


def test_what_ptxas_refuses_on_a_target_is_remembered_and_no_other_refusal(bench: Bench, tmp_path: Path) -> None:
    bare = Arch(12, 1)
    cache = tmp_path / "cache"
    broken = tmp_path / "nothing"
    instruction = "{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %1; cvt.u32.u8 %0, b; }"
    asm = f'unsigned int y; asm("{instruction}" : "=r"(y) : "f"(x)); return y;'
    bench.pristine[SCALE] = f"__device__ inline float scale(float x) {{ {asm} }}\n".encode()
    bench.rules = [Rule(probes=("lib/*",), arch=("sm_121",), because="software", forbids=("^F2FP",))]
    first = bench.one(bare, cache)
    assert first.verdict is Verdict.PASS
    assert first.before is None
    good = bench.toolchain
    bench.toolchain = replace(good, nvcc=broken)
    assert replace(bench.one(bare, cache), cached=False) == first

    bench.toolchain, bench.source = good, "#error not this way\n"
    assert bench.one(bare, cache).verdict is Verdict.FAIL
    bench.toolchain = replace(good, nvcc=broken)
    with pytest.raises(ProofError, match="does not run"):
        bench.one(bare, cache)


def test_an_architecture_that_the_compiler_does_not_know_is_unsupported(bench: Bench) -> None:
    result = bench.one(Arch(99, 9, "a"))
    assert result.verdict is Verdict.UNSUPPORTED
    assert result.verdict.failed
    assert "sm_999a" in result.error


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (KERNEL.replace("probe", "other"), "one is expected|where .text.probe alone is expected"),
        (KERNEL + KERNEL.replace("probe", "second"), "one is expected|where .text.probe alone is expected"),
        ("", "one is expected"),
    ],
)
def test_a_probe_has_exactly_one_kernel(bench: Bench, source: str, why: str) -> None:
    bench.source = source
    result = bench.one(A121)
    assert result.verdict is Verdict.FAIL
    assert any(text in result.error for text in why.split("|")), result.error


def test_host_code_that_no_longer_compiles_shows_in_the_host_pass_alone(bench: Bench, tree: Path) -> None:
    # A device function called from a function for both sides: nvcc -cubin has no host pass, and sees nothing.
    broken = PATCHED + "__host__ __device__ inline unsigned bits(float x) { return __float_as_uint(x); }\n"
    write(tree, {SCALE: broken})
    assert bench.one(A121).verdict is Verdict.PASS
    bench.kind = ProbeKind.HOST
    bench.source = ""
    result = bench.one(A121)
    assert result.verdict is Verdict.FAIL
    assert "__float_as_uint" in result.error
    write(tree, {SCALE: PATCHED})
    bench.rules = []
    passed = bench.run(A121)
    assert (passed.problems, passed.results[0].verdict) == ((), Verdict.PASS), "host code needs no rule"


def test_all_kernels_of_a_source_file_are_judged_together(bench: Bench) -> None:
    bench.kind = ProbeKind.UNIT
    bench.source = """
        template <int N> __global__ void each(float* x) { x[N * threadIdx.x] = scaled(x[threadIdx.x]); }
        template __global__ void each<1>(float*);
        template __global__ void each<3>(float*);
        __global__ void other(float* x) { x[threadIdx.x] = 0.0f; }
    """
    on_120, on_121 = bench.run(A120, A121).results
    assert (on_120.verdict, on_121.verdict) == (Verdict.PASS, Verdict.PASS)
    assert on_120.identical
    assert on_121.before is not None
    assert on_121.after is not None
    roots = [[i for i in listing.instructions if "RSQ" in i.opcode] for listing in (on_121.before, on_121.after)]
    assert not roots[0]
    assert len(roots[1]) >= 2, "in both kernels"
    bench.rules = [replace(SOFTWARE, requires=(), forbids=("^MUFU",))]
    assert bench.one(A121).verdict is Verdict.FAIL, "one kernel of all breaks the rule"


def test_stand_ins_come_after_the_tree_and_after_the_real_headers(bench: Bench, tree: Path, tmp_path: Path) -> None:
    write(tree, {"include/own.h": "#define OWN 1\n"})
    write(tmp_path / "real", {"others.h": "#define OTHERS 2\n"})
    stand_ins = {"own.h": "#define OWN 64\n", "others.h": "#define OTHERS 64\n", "rest.h": "#define REST 4\n"}
    write(tmp_path / "stand-ins", stand_ins)
    bench.settings = {"include": ("stand-ins",), "uses": ("torch",)}
    bench.headers = {"torch": [tmp_path / "real"]}
    bench.rules = [replace(IDENTICAL, identical=False, requires=("^STG",))]
    bench.source = """
        #include <own.h>
        #include <others.h>
        #include <rest.h>
        static_assert(OWN + OTHERS + REST == 7, "each from the first place that has it");
        extern "C" __global__ void probe(int* x) { *x = threadIdx.x; }
    """
    result = bench.one(A120)
    assert result.verdict is Verdict.PASS, result.error


def test_an_interrupt_leaves_no_compiler_behind(bench: Bench, tmp_path: Path) -> None:
    bench.cache = bench.folder / "cache"
    # A compiler that refuses sm_120a at once and never ends for sm_121a; the interrupt comes in between.
    slow = tmp_path / "slow-nvcc"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *sm_120a*) exit 1;; esac\nsleep 60 & echo $! > {tmp_path}/sleeping; wait\n'
    )
    slow.chmod(0o755)
    bench.toolchain = replace(bench.toolchain, nvcc=slow)

    def interrupt(step: Step) -> None:
        if step.done:
            wait_for(tmp_path / "sleeping")
            raise KeyboardInterrupt

    bench.progress = type("Interrupting", (list,), {"append": staticmethod(interrupt)})()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        bench.run(A120, A121)
    assert time.perf_counter() - started < 10
    assert not alive(wait_for(tmp_path / "sleeping"))
