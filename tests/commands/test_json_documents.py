"""The JSON documents of the commands fit the schemas that the same commands print; those of verify are complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from command import Said
from cubins import CONVERTS, LOSES, compile_cuda, targets
from few_probes import few_probes
from verify_reports import DRIFT, REPORTS

from fp4patch.cli import COMMANDS
from fp4patch.console import Failure, document
from fp4patch.core.results import Verdict
from fp4patch.doctor.result import DoctorReport
from fp4patch.images.image import Built, ProofReport, Statement
from fp4patch.proof.result import BuildResult, whole
from fp4patch.proof.toolchain import Toolchain

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]
Fits = Callable[..., None]


@pytest.fixture
def fits(fp4patch: Command) -> Fits:
    """Function that asserts that documents fit the schema of a command: ``fits("status", *documents)``."""

    def check(command: str, *documents: object) -> None:
        validator = jsonschema.Draft202012Validator(json.loads(fp4patch(command, "--json-schema").out))
        written = [json.loads(json.dumps(one)) for one in documents]
        assert [error.message for one in written for error in validator.iter_errors(one)] == []

    return check


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"explore"}))
def test_a_command_with_a_document_prints_its_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    def objects(schema: object) -> Iterator[dict[str, object]]:
        if isinstance(schema, dict):
            yield from (schema,) if isinstance(schema.get("properties"), dict) and "type" in schema else ()
        for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            yield from objects(inner)

    schema = json.loads(Said(capsys, command, "--json-schema").out)
    assert schema["title"] == f"fp4patch {command}"
    jsonschema.Draft202012Validator.check_schema(schema)
    closed = [found["additionalProperties"] for found in objects(schema)]
    assert closed
    assert not any(closed)


def test_what_the_catalog_holds(fits: Fits, fp4patch: Command) -> None:
    fits("show", fp4patch("show", "--json").document, fp4patch("show", "next3", "--json").document)


def test_fetch_export_apply_revert_status_and_their_refusals(
    fits: Fits, fp4patch: Command, tree_copy: GetTree, vllm: Callable[[str], Path], tmp_path: Path
) -> None:
    tree, other, leaves = tree_copy("cutlass", "4.2.1"), tree_copy("cutlass", "4.5.0"), vllm("0.33.0")
    fits("fetch", fp4patch("fetch", "cutlass==4.2.1", tmp_path / "cutlass", "--json").document)
    fits("export", fp4patch("export", "--variant", "next2", "--json", tree).document)
    looked = fp4patch("apply", "--variant", "next2", "--dry-run", "--diff", "--json", tree)
    applied = fp4patch("apply", "--variant", "next2", "--json", tree, other)
    left = fp4patch("apply", "--variant", "next3", "--json", leaves)
    fits("status", *(fp4patch("status", "--json", *trees).document for trees in ([tree], [tree, other, leaves])))
    header = tree / "include/cutlass/float_subbyte.h"
    written = header.read_text()
    header.write_text(written + "// mine\n")
    refused = fp4patch("apply", "--variant", "turbo", "--json", tree)
    assert refused.status == 1
    header.write_text(written)
    reverted = fp4patch("revert", "--json", tree)
    fits("apply", *(said.document for said in (looked, applied, left, refused, reverted)))


def test_verify(
    fits: Fits, fp4patch: Command, whole_tree: GetTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe of half precision is executed for all of its inputs in no time; one that takes minutes is set aside."""
    data = few_probes(tmp_path / "data", {"encode-half-x8": "cutlass", "encode-nvfp4-gemm": "cutlass"})
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    tree = whole_tree("cutlass", "4.2.1")
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    said = fp4patch("verify", "--variant", "next3", "--arch", "sm_120a,sm_121", "--execute", "--json", "-", tree)
    assert said.status == 0, said.err
    built = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.0f", "12.1a", "")
    several = document(whole([*REPORTS.values(), replace(REPORTS["pass"], builds=(built,))]))
    fits("verify", said.document, several, document(whole([])))


def test_doctor(fits: Fits, fp4patch: Command, pristine_tree: GetTree, toolchain: Toolchain, tmp_path: Path) -> None:
    machine = fp4patch("doctor", "--json").document
    tree = fp4patch("doctor", "--json", "--cuda", "13.0", pristine_tree("vllm", "0.33.0")).document
    jit = fp4patch("doctor", "--json", "--cuda", "13.0", pristine_tree("flashinfer", "0.5.0")).document
    built = compile_cuda(toolchain, CONVERTS, tmp_path / "one.o", "-c", *targets("120a"))
    lost = compile_cuda(toolchain, LOSES, tmp_path / "two.o", "-c", *targets("100a", "120f"))
    (tmp_path / "cut.o").write_bytes(lost.read_bytes()[:-100])
    compile_cuda(toolchain, CONVERTS, tmp_path / "ptx.o", "-c", *targets("compute_90"))
    (tmp_path / "Dockerfile").write_text("RUN sed -i s/CUTLASS_ARCH_MMA_SM121A_ENABLED// float_subbyte.h\n")
    looked: list[list[str | Path]] = [[built], [tmp_path], [tmp_path / "Dockerfile"]]
    looked.append(["--require", "sm_107:native", built])
    row = Statement("receipts", Verdict.PASS, "cutlass 4.2.1 (2 files)")
    proof = ProofReport("image", "sha256:0", {}, {}, (row,), ("no labels",))
    proven = document(DoctorReport(None, (), (), (), (proof,)))
    fits("doctor", machine, tree, jit, proven, *(fp4patch("doctor", "--json", *what).document for what in looked))


def test_build(fits: Fits, fp4patch: Command) -> None:
    made = Built("sha256:0", ("a:b",), {"io.fp4patch.variant": "next3"}, "", 1.5)
    planned = fp4patch("build", "--variant", "next3", "--arch", "12.1a", "--dry-run", "--json").document
    fits("build", planned, document(made))


# --- verify's, in full -----------------------------------------------------------------------------------------------


def test_verify_counts_and_lists_what_is_in_the_listings() -> None:
    unchanged, changed, host = document(REPORTS["pass"])["results"]
    assert (changed["probe"], changed["arch"], changed["kind"]) == ("cutlass/e2m1-x2", "sm_121a", "sass")
    assert (changed["before"]["fp4"], changed["after"]["fp4"]) == (1, 0)
    assert [changed["after"][key] for key in ("branches", "instructions")] == [1, 4]
    assert changed["after"]["listing"][1:] == [
        "0010  @!P0 BRA `(.L_x_0)", "0020  FSEL R1, R2, RZ, P1", ".L_x_0:", "0030  EXIT",
    ]  # fmt: skip
    assert (unchanged["identical"], changed["identical"]) == (True, False)
    assert [host[key] for key in ("before", "after", "identical")] == [None] * 3


def test_several_trees_are_one_document_that_fails_if_one_does() -> None:
    assert {name: document(whole([report]))["verdict"] for name, report in REPORTS.items()} == {
        name: "pass" if name == "pass" else "fail" for name in REPORTS
    }
    both = document(whole([REPORTS["pass"], REPORTS["fail"]]))
    assert (both["verdict"], [tree["verdict"] for tree in both["trees"]]) == ("fail", ["pass", "fail"])
    assert document(whole([]))["verdict"] == "fail"


def test_an_error_carries_its_problems() -> None:
    found = document(Failure("no", "do this", (DRIFT,)))
    assert (found["state"], found["error"], found["help"]) == ("refused", "no", "do this")
    assert found["problems"] == [
        {
            "patch": "cutlass/e2m1-guard", "file": "include/cutlass/float_subbyte.h", "line": 47, "expected": "1 site",
            "found": "0", "nearest": "`SM121B_ENABLED`", "help": "see `fp4patch show e2m1-guard`", "state": "drifted",
        }
    ]  # fmt: skip
