"""Probes that are compiled as one translation unit: the same code as alone, and each with its own error."""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from verified import Verified, subject, verified

from fp4patch.catalog.probe import Probe
from fp4patch.catalog.rule import Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict
from fp4patch.core.store import Store, cache_dir
from fp4patch.proof import machine_code
from fp4patch.proof import probe as compiler
from fp4patch.proof.compile import CONFIGURATIONS
from fp4patch.proof.listing import SassListing
from fp4patch.proof.steps import Nvcc
from fp4patch.proof.subject import Means, Probes
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SourceView
from fp4patch.sass import text

A121 = Arch(12, 1, "a")
CACHE = cache_dir() / "compilations"
LIB = """\
#pragma once
__device__ inline float scale(float x) {
#ifdef NDEBUG
  return x * 5.0f;
#else
  return x * 3.0f;
#endif
}
"""
SOURCE = """\
#include "lib.h"
#ifndef TIMES
#define TIMES 1
#endif
constexpr int kTimes = TIMES;
struct Value { float x; };
extern "C" __global__ void probe(Value* v) {
#if TIMES > 3
  asm volatile("tcgen05.fence::before_thread_sync;");
#endif
  for (int k = 0; k < kTimes; ++k) v[threadIdx.x + k].x = scale(v[threadIdx.x + k].x);
}
"""
RULES = [Rule(probes=("lib/*",), arch=("sm_121a",), because="", forbids=("^MUFU",))]


def run(
    tmp_path: Path,
    toolchain: Toolchain,
    times: list[str],
    together: str,
    lib: str = LIB,
    flags: Mapping[str, int | str] = MappingProxyType({}),
    **settings: Any,
) -> Verified:
    """``flags``: macros of the probes whose number begins with 0. The pristine header has a line more, and no code."""
    tree = tmp_path / "tree"
    (tree / "include").mkdir(parents=True, exist_ok=True)
    (tree / "include/lib.h").write_text(lib)
    source = tmp_path / "probe.cu"
    source.write_text(SOURCE)
    probe = Probe(name="", title="", source=source.name, patch="lib/p", together=together)
    defines = {n: {**(flags if n.startswith("0") else {}), **({"TIMES": n} if n else {})} for n in times}
    probes = [(replace(probe, name=f"times-{n}", defines=defines[n]), source) for n in times]
    pristine = settings.pop("pristine", SourceView(tree, {"include/lib.h": f"{lib}\n".encode()}))
    means = Means(**({"store": Store(CACHE)} | {name: settings.pop(name) for name in MEANS & settings.keys()}))
    return verified(subject(pristine, Probes(ran=probes, archs=[A121], **settings), RULES, toolchain), means)


MEANS = {"store", "jobs", "progress"}


def test_what_many_threads_need_is_read_by_one(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = text._instruction
    files_of = compiler._own_files
    asked = list[object]()

    def slowly(*arguments: Any, **named: Any) -> object:
        time.sleep(0.002)
        return read(*arguments, **named)

    def slowly_too(*arguments: Any) -> object:
        asked.append(arguments)
        time.sleep(0.02)
        return files_of(*arguments)

    same = ["1", "01", "001", "0001"]
    run(tmp_path, toolchain, same, "")
    text.read_sections.cache_clear()
    monkeypatch.setattr(text, "_instruction", slowly)
    monkeypatch.setattr(compiler, "_own_files", slowly_too)
    run(tmp_path, toolchain, same, "", jobs=8)
    assert (text.read_sections.cache_info().misses, len(asked)) == (1, 1)


def test_what_one_thread_reads_holds_up_no_other(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads read two listings at the same time, or neither ends."""
    read, both = machine_code.unit_listing, threading.Barrier(2)

    def together(*arguments: Any) -> SassListing:
        both.wait(60)
        return read(*arguments)

    monkeypatch.setattr(machine_code, "unit_listing", together)
    found = run(tmp_path, toolchain, ["2", "3"], "", jobs=2, pristine=SourceView(tmp_path / "tree"))
    assert {one.verdict for one in found.results} == {Verdict.PASS}


def test_the_code_is_the_same_as_that_of_each_alone(tmp_path: Path, toolchain: Toolchain) -> None:
    alone = run(tmp_path, toolchain, ["2", "", "3"], "")
    steps: list[str] = []
    both = run(tmp_path, toolchain, ["2", "", "3"], "all", progress=lambda step: steps.append(step.what))
    assert any(name.startswith("compiling lib/times-2 and 2 more") for name in steps)
    found = [[(one.probe, one.after and one.after.instructions) for one in ran.results] for ran in (alone, both)]
    assert found[0] == found[1]
    assert {one.verdict for one in (*alone.results, *both.results)} == {Verdict.PASS}
    assert len({result.after.code_sha256 for result in both.results if result.after}) == 3


def test_a_macro_for_the_headers_makes_a_unit_of_its_own(tmp_path: Path, toolchain: Toolchain) -> None:
    lib = LIB.replace("NDEBUG", "FP4PATCH_FIVE")
    flags = {"FP4PATCH_FIVE": 1}
    steps = list[str]()
    alone = run(tmp_path, toolchain, ["02", "03"], "", lib, flags)
    given: dict[str, Any] = {"configured": [A121], "progress": lambda step: steps.append(step.what)}
    units = run(tmp_path, toolchain, ["2", "02", "3", "03"], "all", lib, flags, **given)
    named = {name.partition(" and 1 more")[0] for name in steps if " and 1 more" in name}
    assert named == {"compiling lib/times-2", "compiling lib/times-02"}
    code = {one.probe: one.after.instructions for one in units.results if one.after}
    assert [code["lib/times-02"], code["lib/times-03"]] == [
        one.after and one.after.instructions for one in alone.results
    ]
    assert code["lib/times-02"] != code["lib/times-2"]
    assert {one.probe for one in units.compiled.configured} == {"lib/times-2", "lib/times-3"}


def test_what_no_patch_changes_is_compiled_once_for_both_sides(tmp_path: Path, toolchain: Toolchain) -> None:
    steps = list[str]()
    given: dict[str, Any] = {
        "pristine": SourceView(tmp_path / "tree"),
        "progress": lambda step: steps.append(step.what),
    }
    one, two = (run(tmp_path, toolchain, ["2", "3"], "all", configured=[A121], **views) for views in (given, {}))
    assert steps == ["compiling", "compiling lib/times-2 and 1 more sm_121a pristine and patched"]
    assert [(row.before, row.after) for row in one.results] == [(row.before, row.after) for row in two.results]
    assert [bool(ran.compiled.configured) for ran in (one, two)] == [False, True]


def test_one_that_does_not_compile_hides_no_other(tmp_path: Path, toolchain: Toolchain) -> None:
    found = {one.probe: one for one in run(tmp_path, toolchain, ["2", "3", "nothing"], "all").results}
    assert found["lib/times-2"].verdict is found["lib/times-3"].verdict is Verdict.PASS
    assert found["lib/times-nothing"].verdict is Verdict.FAIL
    assert "nothing" in found["lib/times-nothing"].error


def test_those_that_the_assembler_refuses_are_told_from_the_others_at_once(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    units, run_nvcc = list[str](), Nvcc.run

    def counting(self: Nvcc, command: Any, scratch: Path) -> tuple[int, str]:
        units.append((scratch / "together.cu").read_text())
        return run_nvcc(self, command, scratch)

    monkeypatch.setattr(Nvcc, "run", counting)
    times = ["2", "4", "3", "5"]
    found = {one.probe: one for one in run(tmp_path, toolchain, times, "all", store=Store(tmp_path / "new")).results}
    assert found["lib/times-2"].verdict is found["lib/times-3"].verdict is Verdict.PASS
    for name in ("lib/times-4", "lib/times-5"):
        assert found[name].verdict is Verdict.FAIL
        assert "tcgen05" in found[name].error
    assert found["lib/times-4"].error != found["lib/times-5"].error
    assert sorted("TIMES 4" in unit for unit in units) == [False, False, True, True]  # of both sides
    again = run(tmp_path, toolchain, times, "all", store=Store(tmp_path / "new")).results
    assert [one.error for one in again] == [one.error for one in found.values()]
    assert len(units) == 4


@pytest.mark.parametrize("every", [False, True])
def test_flags_that_change_the_code_are_noticed(tmp_path: Path, toolchain: Toolchain, every: bool) -> None:
    found = run(
        tmp_path, toolchain, ["2", "3"], "" if every else "all", configured=[A121], every=every
    ).compiled.configured
    assert {(one.probe, one.flags) for one in found} == {
        (f"lib/times-{n}", flags) for n in (2, 3) for flags in CONFIGURATIONS
    }
    assert {one.flags for one in found if not one.same} == {CONFIGURATIONS[0], ("-use_fast_math",)}
    assert all(one.built.listing for one in found)


def test_another_function_beside_the_kernel_is_a_failure(tmp_path: Path, toolchain: Toolchain) -> None:
    lib = "__device__ __noinline__ float scale(float x) { return x * 3.0f; }"
    found = run(tmp_path, toolchain, ["2"], "", lib=lib, configured=[A121], every=True).compiled.configured
    (one,) = (one for one in found if not one.built.listing)
    assert one.flags == ("-rdc=true",)
    assert one.built.error
