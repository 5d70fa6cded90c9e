"""A new patch is one directory of at most three files written by hand, and no other file is changed by hand.

The tree is a small one of MLX; the catalog treats all targets alike.
"""

import json
from pathlib import Path

import pytest
from cases import cases
from command import Said
from few_probes import copy_data
from small_trees import small_tree

from fp4patch.catalog.manifest import forget, load
from fp4patch.catalog.plan import edits_of
from fp4patch.core.errors import ManifestError
from fp4patch.edits.fold import fold

FILES = {
    "patch.toml": r"""
version = "1"
title = "a sum in the other order"
reason = "an example"
link = "https://github.com/ml-explore/mlx"
applies = ">=0.32"
retire = "when the example has been understood"
variants = ["native"]

[[edits]]
op = "replace"
search = ["mlx/backend/cuda/**/*.cuh"]
about = "struct CodeOfSum"
find = "low_nibble(a + b)"
replace = "low_nibble(b + a)"

[[probes]]
name = "sum"
title = "E2M1 code of a sum"
source = "probe.cu"

[[rules]]
probes = ["mlx/sum"]
arch = ["sm_12[01][af]"]
because = "a conversion is one instruction"
without = ["branches", "local"]
""",
    "probe.cu": """#include "mlx/backend/cuda/code_of_sum.cuh"

extern "C" __global__ void probe(float const *values, unsigned *codes) {
  codes[threadIdx.x] = CodeOfSum()(values[threadIdx.x], values[0]);
}
""",
    "cases.diff": """@@ code-of-sum.cuh @@
 struct CodeOfSum {
-  __device__ unsigned operator()(float a, float b) { return low_nibble(a + b); }
+  __device__ unsigned operator()(float a, float b) { return low_nibble(b + a); }
 };
""",
}
HEADER = r"""#pragma once
inline __device__ unsigned low_nibble(float x) {
  unsigned code;
  asm("{.reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %1; cvt.u32.u8 %0, b;}" : "=r"(code) : "f"(x));
  return code & 15;
}
struct CodeOfSum {
  __device__ unsigned operator()(float a, float b) { return low_nibble(a + b); }
};
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the data, with the directory of a new patch added to it."""
    root = copy_data(tmp_path / "data")
    folder = root / "patches/mlx/order-of-sum"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("FP4PATCH_DATA", str(root))
    forget()
    return root


def test_a_new_patch_is_one_directory_and_its_variants_apply_and_verify_it(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(FILES) <= 3
    patch = load(data).patches["mlx/order-of-sum"]
    (case,) = cases(patch.id).values()
    steps = [(step.edit, step.template, step.options) for step in edits_of([patch], {})]
    assert fold(case.before, steps).text == case.after
    tree = small_tree("mlx", tmp_path / "mlx")
    header = tree / "mlx/backend/cuda/code_of_sum.cuh"
    header.write_text(HEADER)
    assert Said(capsys, "apply", "--variant", "native", tree).status == 0
    assert header.read_text().startswith(HEADER.replace("a + b", "b + a"))
    said = Said(capsys, "verify", "--variant", "native", "--arch", "sm_121a", "--no-execute", "--json", "-", tree)
    document = json.loads(said.out)
    rules = {(result["probe"], check["rule"]) for result in document["results"] for check in result["checks"]}
    assert (said.status, document["verdict"]) == (0, "pass")
    assert ("mlx/sum", "without branches") in rules
    assert Said(capsys, "revert", tree).status == 0
    assert header.read_text() == HEADER
    assert load(data).variants["native"].targets["mlx"].patches[-1] == "order-of-sum"


def test_a_variant_that_does_not_exist_is_named_with_file_and_key(data: Path) -> None:
    file = data / "patches/mlx/order-of-sum/patch.toml"
    file.write_text(file.read_text().replace('variants = ["native"]', 'variants = ["nativ"]', 1))
    forget()
    with pytest.raises(ManifestError) as error:
        load(data)
    (problem,) = error.value.problems
    assert problem.file == "patches/mlx/order-of-sum/patch.toml"
    assert f"{problem.nearest}: {problem.expected}".startswith("variants[0]: one of native")
