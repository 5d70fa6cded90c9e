"""The JSON schemas of the commands' results, against the documents that the commands print of real things."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from command import Said
from cubins import CONVERTS, LOSES, compile_cuda, targets
from few_probes import few_probes
from verify_reports import REPORTS

from fp4patch.catalog.manifest import load
from fp4patch.catalog.rule import Promise
from fp4patch.cli import COMMANDS
from fp4patch.commands.evidence.result import Checked, Evidence
from fp4patch.commands.export.result import Series
from fp4patch.commands.json_schema import json_schema
from fp4patch.commands.list import Lists
from fp4patch.commands.show import Shown
from fp4patch.console import Failure, document
from fp4patch.core.arch import Arch
from fp4patch.core.problem import Problem
from fp4patch.core.verdict import Verdict
from fp4patch.doctor.result import DoctorReport
from fp4patch.images.image import Built, DryRun, ProofReport, Statement
from fp4patch.proof.execution.result import Executed, Execution, Mismatch, Sweep, SweepRow
from fp4patch.proof.result import BuildResult, VerifyReport, VerifyReports, whole
from fp4patch.proof.specification import InputClass
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sources.fetch import Fetched
from fp4patch.tree.apply import Applied
from fp4patch.tree.status import OneTree, SeveralTrees

GetTree = Callable[[str, str], Path]
Command = Callable[..., Said]
Holds = Callable[..., None]

DOCUMENTS: dict[str, Any] = {
    "list": Lists,
    "show": Shown,
    "fetch": Fetched,
    "apply": Applied,
    "status": OneTree | SeveralTrees,
    "export": Series,
    "verify": VerifyReport | VerifyReports,
    "evidence": Evidence,
    "evidence-check": Checked,
    "doctor": DoctorReport,
    "build": Built,
    "build-dry-run": DryRun,
    "error": Failure,
}

COMMAND_OF = {"matrix": "list", "evidence-check": "evidence", "build-dry-run": "build", "error": "show"}
"""Commands that print these documents; every other document has its command's name."""

MISMATCHED = Executed(
    (
        Execution(
            "cutlass/e2m1-x2",
            Arch(12, 1, "a"),
            "patched",
            Promise.EXACT,
            Sweep(1, (SweepRow(InputClass.FINITE, 1 << 32, 1, 1, (Mismatch(0x3E800001, 1, 0),)),)),
        ),
    )
)

# --- the check itself ------------------------------------------------------------------------------------------------

EVERY = object()
"""In the place of a value: every value that the schema allows."""


def keys(schema: dict[str, Any], parts: dict[str, Any], at: str, value: object = EVERY) -> Iterator[str]:
    """Return the keys that a schema describes and that a value has, each below its part of the schema."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from keys(parts[name], parts, name, value)
    for option in schema.get("anyOf", ()):
        if value is EVERY or fits(option, parts, value):
            yield from keys(option, parts, at, value)
    for key, inner in schema.get("properties", {}).items():
        if value is EVERY or (isinstance(value, dict) and key in value):
            yield f"{at}.{key}"
            yield from keys(inner, parts, f"{at}.{key}", value[key] if isinstance(value, dict) else EVERY)
    for within in (schema.get("items"), schema.get("additionalProperties")):
        if within:
            inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            for one in (EVERY,) if value is EVERY else inside:
                yield from keys(within, parts, at, one)


def fits(schema: dict[str, Any], parts: dict[str, Any], value: object) -> bool:
    """Return whether a valid value matches this alternative; objects are distinguished by their keys."""
    if "$ref" in schema:
        return fits(parts[schema["$ref"].removeprefix("#/$defs/")], parts, value)
    if not isinstance(value, dict):
        return "properties" not in schema
    return set(schema.get("required", ())) <= set(value) <= set(schema.get("properties", ()))


@pytest.fixture
def holds(fp4patch: Command) -> Holds:
    """Function that asserts that documents fit their schema and hold all its keys: ``holds("status", *documents)``.

    They fit what the command prints with ``--json-schema`` too. ``elsewhere``: keys, or parts of the schema with
    all of theirs, that need not occur.
    """

    def check(name: str, *documents: object, elsewhere: tuple[str, ...] = ()) -> None:
        schema = json_schema(name, DOCUMENTS[name])
        printed = json.loads(fp4patch(COMMAND_OF.get(name, name), "--json-schema").out)
        validators = [jsonschema.Draft202012Validator(one) for one in (schema, printed)]
        written = [json.loads(json.dumps(one)) for one in documents]
        assert [error.message for one in written for by in validators for error in by.iter_errors(one)] == []
        parts = schema.get("$defs", {})
        seen = {key for one in documents for key in keys(schema, parts, name, one)}
        missing = [key for key in dict.fromkeys(keys(schema, parts, name)) if key not in seen]
        assert [key for key in missing if key not in elsewhere and key.partition(".")[0] not in elsewhere] == []

    return check


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"explore"}))
def test_a_command_with_a_document_prints_its_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    def objects(schema: object) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            yield from (schema,) if "properties" in schema else ()
        for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            yield from objects(inner)

    schema = json.loads(Said(capsys, command, "--json-schema").out)
    assert schema["title"] == f"fp4patch {command}"
    jsonschema.Draft202012Validator.check_schema(schema)
    closed = [found["additionalProperties"] for found in objects(schema) if isinstance(found["properties"], dict)]
    assert closed
    assert not any(closed)


def test_a_document_that_says_more_or_less_is_noticed(holds: Holds, fp4patch: Command) -> None:
    found = fp4patch("show", "nothing-of-this-name", "--json").document
    for wrong in (found | {"more": 1}, {key: found[key] for key in found if key != "help"}, found | {"schema": 2}):
        with pytest.raises(AssertionError):
            holds("error", wrong, elsewhere=("Problem",))
    with pytest.raises(AssertionError):
        holds("error", found)  # no key of a problem is in it


# --- every command ---------------------------------------------------------------------------------------------------


def test_list(holds: Holds, fp4patch: Command) -> None:
    holds("list", *(fp4patch("list", *what, "--json").document for what in ([], ["variants"], ["patches"])))


def test_show(holds: Holds, fp4patch: Command) -> None:
    catalog = load()
    names = [*catalog.variants, *catalog.targets, *catalog.patches]
    shown = [fp4patch("show", name, "--json").document for name in names]
    schema = json_schema("show", Shown)
    holds("show", *shown, elsewhere=tuple(schema["$defs"]))  # not every kind of edit need be in use


def test_fetch(holds: Holds, fp4patch: Command, tmp_path: Path) -> None:
    holds("fetch", fp4patch("fetch", "cutlass==4.2.1", tmp_path / "cutlass", "--json").document)
    assert "--whole" in fp4patch("fetch", "cutlass==4.2.1", tmp_path / "again").out


def test_export(holds: Holds, fp4patch: Command, tree_copy: GetTree) -> None:
    series = fp4patch("export", "--variant", "next2", "--json", tree_copy("cutlass", "4.2.1")).document
    holds("export", series)


def test_apply_revert_status_and_their_refusals(
    holds: Holds, fp4patch: Command, tree_copy: GetTree, vllm: Callable[[str], Path]
) -> None:
    tree, other = tree_copy("cutlass", "4.2.1"), tree_copy("cutlass", "4.5.0")
    looked = fp4patch("apply", "--variant", "next2", "--dry-run", "--diff", "--json", tree)
    applied = fp4patch("apply", "--variant", "next2", "--json", tree, other)
    leaves = vllm("0.14.1")  # an exact test for SM120
    left = fp4patch("apply", "--variant", "native", "--json", leaves)
    one, both = fp4patch("status", "--json", tree), fp4patch("status", "--json", tree, other, leaves)
    header = tree / "include/cutlass/float_subbyte.h"
    written = header.read_text()
    header.write_text(written + "// mine\n")
    refused = fp4patch("apply", "--variant", "turbo", "--json", tree)
    assert refused.status == 1
    header.write_text(written)
    reverted = fp4patch("revert", "--json", tree)
    holds("apply", *(said.document for said in (looked, applied, left, refused, reverted)))
    holds(
        "status",
        one.document,
        fp4patch("status", "--json", leaves).document,
        both.document,
        fp4patch("status", "--json", tree).document,
    )


def test_verify(
    holds: Holds, fp4patch: Command, whole_tree: GetTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe of half precision is executed for all of its inputs in no time; one that takes minutes is set aside."""
    data = few_probes(tmp_path / "data", {"encode-half-x8": "cutlass", "encode-nvfp4-gemm": "cutlass"})
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    tree = whole_tree("cutlass", "4.2.1")
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    said = fp4patch("verify", "--variant", "next3", "--arch", "sm_120a,sm_121", "--execute", "--json", "-", tree)
    assert said.status == 0, said.err
    built = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.0f", "12.1a", "")
    made = [*REPORTS.values(), replace(REPORTS["pass"], executed=MISMATCHED, builds=(built,))]
    several, none = document(whole(made)), document(whole([]))
    holds("verify", said.document, several, none, elsewhere=())


def test_errors(holds: Holds, fp4patch: Command) -> None:
    unknown = fp4patch("show", "nothing-of-this-name", "--json")
    assert unknown.status == 2
    holds("error", unknown.document, document(Failure("refused", "a remedy", (Problem("one site", "none"),))))


def test_doctor(holds: Holds, fp4patch: Command, pristine_tree: GetTree, toolchain: Toolchain, tmp_path: Path) -> None:
    machine = fp4patch("doctor", "--json").document
    tree = fp4patch("doctor", "--json", "--cuda", "13.0", pristine_tree("vllm", "0.33.0")).document
    jit = fp4patch("doctor", "--json", "--cuda", "13.0", pristine_tree("flashinfer", "0.5.0")).document
    built = compile_cuda(toolchain, CONVERTS, tmp_path / "one.o", "-c", *targets("120a"))
    binary = fp4patch("doctor", "--json", built).document
    assert binary["verdict"] == "red"
    lost = compile_cuda(toolchain, LOSES, tmp_path / "two.o", "-c", *targets("100a", "120f"))
    (tmp_path / "cut.o").write_bytes(lost.read_bytes()[:-100])
    unread = fp4patch("doctor", "--json", tmp_path).document
    ptxas = toolchain.root / "bin/ptxas"
    required = fp4patch("doctor", "--json", "--require", "sm_107:native", built, ptxas).document
    (tmp_path / "Dockerfile").write_text("RUN sed -i s/CUTLASS_ARCH_MMA_SM121A_ENABLED// float_subbyte.h\n")
    recipe = fp4patch("doctor", "--json", tmp_path / "Dockerfile").document
    compile_cuda(toolchain, CONVERTS, tmp_path / "ptx.o", "-c", *targets("compute_90"))
    loads = fp4patch("doctor", "--json", tmp_path / "ptx.o").document
    row = Statement("receipts", Verdict.PASS, "cutlass 4.2.1 (2 files)")
    proof = ProofReport("image", "sha256:0", {}, {}, (row,), ("no labels",))
    proven = document(DoctorReport(None, (), (), (), (proof,)))
    holds("doctor", machine, tree, jit, binary, unread, required, recipe, loads, proven)


def test_build(holds: Holds, fp4patch: Command) -> None:
    holds("build-dry-run", fp4patch("build", "--variant", "next3", "--arch", "12.1a", "--dry-run", "--json").document)
    made = Built(
        ("docker", "buildx"), "sha256:0", "", ("a:b",), {"io.fp4patch.variant": "next3"}, "", {"build": 1.5}, ()
    )
    holds("build", document(made))
