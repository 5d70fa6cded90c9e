"""Recorded counts: what is longer than its record fails, and what has no record is not passed over."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import Said
from few_probes import few_probes

from fp4patch.catalog.manifest import data_root, forget, load
from fp4patch.catalog.probe import ProbeKind
from fp4patch.core.errors import ManifestError
from fp4patch.proof.counts import METRICS, RULE, Row, check, recorded
from tools import record_counts

FOUR = json.dumps(METRICS)
PROBE, TREE = "float-to-e2m1-x2", ("cutlass", "4.2.1")
RIGHT = "uint32_t const bits = detail::copy_bits<float, uint32_t>(s);"
LONGER = RIGHT.replace("(s)", "(__frcp_rn(__frcp_rn(s) + 3.0f) * s)")


@pytest.mark.parametrize(
    ("row", "counts", "fails", "detail"),
    [
        (
            Row((43, 0, 0, 1), counted=False),
            (44, 1, 1, 1),
            True,
            "44 instructions, at most 43; 1 branches, at most 0; 1 local, at most 0",
        ),
        (
            Row((None, None, 52, None), counted=False),
            (5309, 9, 52, 9),
            False,
            "5309 instructions, 9 branches, 52 local, 9 f64",
        ),
        (Row((43, 0, 0, 1), counted=True), (49, 0, 0, 1), False, "49 instructions, 0 branches, 0 local, 1 f64"),
        (
            Row((43, 20, 0, 1), counted=True),
            (50, 24, 0, 2),
            True,
            "50 instructions, at most 49; 24 branches, at most 23; 2 f64, at most 1",
        ),
    ],
)
def test_a_count_above_its_limit_is_named(row: Row, counts: tuple[int, ...], fails: bool, detail: str) -> None:
    size, branches, local, f64 = counts
    listing = SimpleNamespace(size=size, branches=branches, local=local, f64=f64)
    found = check(row, listing)  # type: ignore[arg-type]
    assert (found.verdict.failed, found.detail) == (fails, detail)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"counts": []}',
        *(
            f'{{"metrics": {metrics}, "releases": {{}}, "{part}": {{"13.0": {{{row}}}}}{rest}}}'
            for metrics, part, row, rest in (
                ("[]", "counts", '"a/b sm_90": [43, 0, 0, 0]', ""),
                (FOUR, "counts", '"a/b sm_90": [43, 0, 0]', ""),
                (FOUR, "counts", '"a/b sm_90": [43, null, 0, 0]', ""),
                (FOUR, "counts", '"a/b": [43, 0, 0, 0]', ""),
                (FOUR, "counts", '"a/b sm_90": [-1, 0, 0, 0]', ""),
                (FOUR, "limits", '"a/b sm_90": [43, "*", 0, 0]', ', "counts": {}'),
            )
        ),
    ],
)
def test_a_damaged_record_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ManifestError, match="holds no counts"):
        recorded(file)


def test_counts_and_limits_are_read_by_compiler_probe_and_target(tmp_path: Path) -> None:
    rows = {
        ("13.0", "a/b", "sm_90"): Row((43, 0, 0, 1), counted=True),
        ("13.0", "a/b", "sm_121a"): Row((None, 5, 0, 0), counted=False),
    }
    file = tmp_path / "x.json"
    file.write_text(record_counts.text(rows, {"a": ["1.0"]}))
    assert recorded(file) == rows
    assert '\n"a/b sm_90": [43, 0, 0, 1]\n' in file.read_text()


def test_every_record_is_of_a_probe_and_a_target_of_its_variant() -> None:
    catalog = load()
    for file in (data_root() / "records/counts").glob("*.json"):
        variant = catalog.variant(file.stem)
        probes = {p.id: p for target in variant.targets for p, _ in catalog.probes_of(variant, target)}
        assert not [probe for _, probe, _ in recorded(file) if probes[probe].kind is ProbeKind.HOST]
        data = json.loads(file.read_text())
        assert record_counts.text(recorded(file), data["releases"]) == file.read_text(), "python -m tools.record_counts"


def test_what_is_recorded_passes_longer_code_fails_and_no_record_is_said(
    whole_tree: Callable[[str, str], Path],
    fp4patch: Callable[..., Said],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = few_probes(tmp_path / "data", {PROBE: "cutlass"})
    (data / "records/counts/next2.json").unlink()
    monkeypatch.setenv("FP4PATCH_DATA", str(data))
    tree = whole_tree(*TREE)
    assert fp4patch("apply", "--variant", "next2", tree).status == 0
    document = tmp_path / "verify.json"
    verify = ("verify", "--no-execute", "--variant", "next2", "--json", document, tree)

    said = fp4patch(*verify)
    assert said.status == 0
    assert "not recorded" in said.out
    assert [row["unrecorded"] for row in json.loads(document.read_text())["results"]] == [False, True]

    record_counts.record([document])
    recorded.cache_clear()
    said = fp4patch(*verify)
    assert (said.status, "not recorded" in said.out) == (0, False)

    converter = data / "patches/cutlass/e2m1-converter/converter.cuh"
    assert RIGHT in converter.read_text()
    converter.write_text(converter.read_text().replace(RIGHT, LONGER))
    forget()
    assert fp4patch("apply", "--variant", "next2", tree).status == 0
    assert fp4patch(*verify).status == 1
    failed = [c for row in json.loads(document.read_text())["results"] for c in row["checks"] if c["verdict"] == "fail"]
    assert RULE in [check["rule"] for check in failed]
