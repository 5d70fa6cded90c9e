"""The re-check of a proof: a real one holds, and each way of tampering with it is found."""

import gc
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from verify_reports import SM120A, SM121A, report

import fp4patch
from fp4patch import cli
from fp4patch.commands.doctor_text import proof_text
from fp4patch.console import as_json
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Verdict
from fp4patch.images import inspection, provenance
from fp4patch.images.image import ProofReport
from fp4patch.images.plan import plan
from fp4patch.proof.result import BuildResult, VerifyReport, whole

Proof = dict[str, bytes]


@pytest.fixture(scope="module")
def proof(real_proof: Path) -> Proof:
    folder = real_proof / "proof"
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def labels(proof: Proof) -> dict[str, str]:
    request = plan("next2", ["12.1a"], "proof", trees={"cutlass": "4.2.1"})
    receipts = provenance.receipts_of(proof)
    patches = tuple(p for name in sorted(receipts) for p in json.loads(receipts[name])["patches"])
    return provenance.labels(replace(request, patches=patches))


def failed(proof: Proof, said: dict[str, str] | None) -> list[str]:
    return [finding.subject for finding in provenance.recheck(proof, said) if finding.verdict.failed]


def edited(proof: Proof, name: str, change: Callable[[dict[str, Any]], None]) -> Proof:
    document = json.loads(proof[name])
    change(document)
    return proof | {name: json.dumps(document).encode()}


def hashed(proof: Proof) -> Proof:
    """Return the proof with the hashes of its documents, as the Dockerfile makes them."""
    names = ["verify.json", *sorted(name for name in proof if name.startswith("receipts/"))]
    lines = [f"{hashlib.sha256(proof[name]).hexdigest()}  {name}\n" for name in names]
    return proof | {"SHA256SUMS": "".join(lines).encode()}


def test_a_real_proof_agrees_with_itself_and_with_its_labels(proof: Proof) -> None:
    assert failed(proof, labels(proof)) == []
    assert failed(proof, None) == []
    assert proof == hashed(proof)


IDLE = replace(report(), target="vllm", version="0.33.0", patches=(), variant="next2", fp4patch=fp4patch.__version__)
"""A tree that the variant leaves as it is: nothing was compiled, and there is no receipt."""


def verified(proof: Proof, *reports: VerifyReport) -> Proof:
    """Return the proof of its tree and of others."""
    own = json.loads(proof["verify.json"])
    others = [json.loads(as_json(report)) for report in reports]
    verdict = json.loads(as_json(whole(reports)))["verdict"]
    document = {"schema": 1, "verdict": "pass" if verdict == "nothing" else verdict, "trees": [own, *others]}
    return hashed(proof | {"verify.json": json.dumps(document).encode()})


def test_a_tree_for_which_there_is_nothing_to_do_passes(proof: Proof) -> None:
    both = verified(proof, IDLE)
    assert failed(both, None) == []
    # The labels were made before anybody knew that: they name all patches of the variant for all trees.
    said = labels(proof)
    assert failed(both, said | {"io.fp4patch.patches": said["io.fp4patch.patches"] + ", vllm/sm120-family 4"}) == []
    assert failed(both, said | {"io.fp4patch.patches": said["io.fp4patch.patches"] + ", cutlass/other 4"}) == [
        "label io.fp4patch.patches"
    ]


def test_where_no_tree_has_anything_to_do_nothing_is_claimed(proof: Proof) -> None:
    alone = hashed({"pins.json": proof["pins.json"], "verify.json": as_json(IDLE).encode()})
    said = labels(proof) | {"io.fp4patch.patches": "vllm/sm120-family 4"}
    assert {finding.verdict for finding in provenance.recheck(alone, None)} == {Verdict.NOTHING, Verdict.PASS}
    assert [f.subject for f in provenance.recheck(alone, said) if f.verdict is Verdict.NOTHING] == [
        "receipts",
        "verify",
        "architectures",
    ]
    assert failed(alone, said) == []


def test_a_tree_that_its_build_alone_judges_passes_for_what_was_asked(proof: Proof) -> None:
    built = BuildResult("vllm/arch-lists", "13.0", "12.1a", "none", "12.1a", "")
    judged = replace(IDLE, patches=("vllm/keep 1",), builds=(built,), arch=(SM121A,))
    receipt: dict[str, Any] = {
        "target": "vllm",
        "version": "0.33.0",
        "variant": "next2",
        "fp4patch": fp4patch.__version__,
    }
    receipt |= {"patches": ["vllm/keep 1"], "files": {"CMakeLists.txt": {"patches": ["vllm/keep 1"]}}}
    both = proof | {"receipts/vllm.json": json.dumps(receipt).encode()}
    assert failed(verified(both, judged), None) == []
    assert failed(verified(both, replace(judged, arch=(SM120A,))), None) == ["architectures"]
    wrong = replace(judged, builds=(replace(built, detail="no code for sm_121"),))
    assert failed(verified(both, wrong), None) == ["verify"]


@pytest.mark.parametrize("name", ["variant", "patches", "version", "arch", "vllm", "cutlass", "torch", "cuda"])
def test_a_label_that_says_something_else_is_found(proof: Proof, name: str) -> None:
    assert failed(proof, labels(proof) | {f"io.fp4patch.{name}": "another"}) == [f"label io.fp4patch.{name}"]


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "a check": ("verify.json", lambda d: d["results"][0]["checks"][0].update(verdict="fail")),
    "a count": ("verify.json", lambda d: d["results"][0]["after"].update(instructions=1)),
    "no check": ("verify.json", lambda d: d["results"][0].update(checks=[])),
    "a build": ("verify.json", lambda d: d.update(builds=[{"check": "vllm/arch-lists", "verdict": "fail"}])),
    "a file": ("receipts/cutlass.json", lambda d: next(iter(d["files"].values())).update(pristine_sha256="0" * 64)),
}


@pytest.mark.parametrize(("name", "change"), CHANGES.values(), ids=CHANGES)
def test_a_document_that_was_edited_is_found_by_its_hash(
    proof: Proof, name: str, change: Callable[[dict[str, Any]], None]
) -> None:
    assert failed(edited(proof, name, change), None) == ["hashes"]


def test_a_document_that_has_no_hash_is_found(proof: Proof) -> None:
    without = {name: data for name, data in proof.items() if name != "SHA256SUMS"}
    assert failed(without, None) == ["hashes"]
    assert failed(proof | {"SHA256SUMS": b""}, None) == ["hashes"]
    assert failed(proof | {"SHA256SUMS": proof["SHA256SUMS"] + b"0  receipts/vllm.json\n"}, None) == ["hashes"]


@pytest.mark.parametrize("verdict", ["fail", "unsupported"])
def test_the_verdict_is_that_of_verify(proof: Proof, verdict: str) -> None:
    assert failed(hashed(edited(proof, "verify.json", lambda d: d.update(verdict=verdict))), None) == ["verify"]


def test_an_architecture_that_has_no_result_was_not_looked_at(proof: Proof) -> None:
    def only_say_so(document: dict[str, Any]) -> None:
        document["arch"].append("sm_90")

    claimed = hashed(edited(proof, "verify.json", only_say_so))
    assert failed(edited(claimed, "pins.json", lambda d: d["judged"].append("sm_90")), None) == ["architectures"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("verify.json", b"{"),
        ("verify.json", b"{}"),
        ("verify.json", b'{"trees": 7}'),
        ("verify.json", b'{"verdict": "pass", "trees": [[]]}'),
        ("verify.json", b'{"verdict": "perhaps", "trees": []}'),
        ("SHA256SUMS", b"\xff"),
        ("receipts/cutlass.json", b"{}"),
        ("receipts/cutlass.json", b'{"target": "cutlass", "version": "1", "variant": [], "files": {"x": 1}}'),
        ("pins.json", b'{"judged": 7}'),
        ("pins.json", b'{"torch": "2"}'),
    ],
)
def test_a_document_of_another_shape_is_one_sentence(proof: Proof, name: str, content: bytes) -> None:
    with pytest.raises(ImageError, match="not one that fp4patch writes"):
        provenance.recheck(proof | {name: content}, labels(proof))


def test_a_verdict_about_something_else_is_found(proof: Proof) -> None:
    other = hashed(edited(proof, "verify.json", lambda d: d["patches"].pop()))
    assert failed(other, None) == ["receipt of cutlass"]
    idle = edited(proof, "receipts/cutlass.json", lambda d: d["patches"].append("cutlass/upstreamed-by-now 1"))
    assert failed(hashed(idle), None) == []
    fewer = edited(proof, "pins.json", lambda d: d["judged"].append("sm_120a"))
    assert failed(fewer, None) == ["architectures"]


@pytest.mark.parametrize(
    ("missing", "subject"),
    [("pins.json", "architectures"), ("receipts/cutlass.json", "receipt of cutlass"), ("verify.json", "verify")],
)
def test_a_document_that_was_removed_is_missed(proof: Proof, missing: str, subject: str) -> None:
    assert subject in failed({name: data for name, data in proof.items() if name != missing}, None)


def test_a_red_scan_of_the_built_files_is_a_failure(proof: Proof) -> None:
    assert failed(proof | {"binaries.json": b'{"verdict": "red"}'}, None) == ["binaries"]
    assert failed(proof | {"binaries.json": b"{}"}, None) == ["binaries"]
    scanned = b'{"verdict": "yellow", "binaries": [{"files": [%s]}]}'
    assert failed(proof | {"binaries.json": scanned % b'{"name": "vllm/_C.abi3.so"}'}, None) == []
    assert failed(proof | {"binaries.json": scanned % b""}, None) == ["binaries"]


def test_an_exported_proof_is_inspected_as_a_folder(
    real_proof: Path, doctor: Callable[..., tuple[int, dict[str, Any]]]
) -> None:
    status, document = doctor(real_proof / "proof")
    (proof,) = document["proofs"]
    assert (status, document["verdict"], proof["verdict"], document["binaries"]) == (0, "green", "pass", [])
    assert proof["pins"]["variant"] == "next2"


def test_an_edited_proof_fails_doctor(
    proof: Proof, real_proof: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(real_proof / "proof", tmp_path / "proof")
    changed = edited(proof, "pins.json", lambda d: d["judged"].append("sm_90"))
    (tmp_path / "proof/pins.json").write_bytes(changed["pins.json"])
    assert cli.run(["doctor", str(tmp_path)]) == 1
    assert ": 1 to repair" in capsys.readouterr().out


def test_directories_of_other_things_have_no_proof(tmp_path: Path) -> None:
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / "dinner.json").write_text('{"total": 7}')
    assert inspection.of_directory(tmp_path) is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the package leaves its socket open
def test_without_an_engine_labels_and_proof_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    report = inspection.of_image("some-image")
    gc.collect()
    assert report is not None
    assert report.verdict is Verdict.NOTHING
    assert report.notes == ("labels and proof were not read: no docker engine responds",)


def test_a_label_cannot_add_a_line_or_steer_the_terminal(proof: Proof) -> None:
    said = labels(proof) | {"io.fp4patch.variant": "next2\nPASS  all statements agree\x1b[2J"}
    findings = tuple(provenance.recheck(proof, said))
    console = Console(file=io.StringIO(), width=120)
    console.print(proof_text(ProofReport("image", "sha256:1", said, {}, findings)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith("PASS")]


def test_the_label_of_a_stack_is_held_against_the_receipts(proof: Proof) -> None:
    sha, name = "a" * 64, "io.fp4patch.stacks"
    diff = {"stack": "carried", "stack_sha256": sha}
    with_stack = hashed(edited(proof, "receipts/cutlass.json", lambda d: d.update(diffs=[diff, diff])))
    said = labels(proof)
    assert name not in said
    assert failed(with_stack, said | {name: f"cutlass/carried {sha}"}) == []
    assert failed(with_stack, said | {name: f"cutlass/carried {'b' * 64}"}) == [f"label {name}"]
    assert failed(with_stack, said) == [f"label {name}"]
    assert failed(proof, said | {name: f"cutlass/carried {sha}"}) == [f"label {name}"]
