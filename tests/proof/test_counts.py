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
from fp4patch.proof.counts import RULE, check, recorded
from tools import record_counts

PROBE, TREE = "float-to-e2m1-x2", ("cutlass", "4.2.1")
RIGHT = "uint32_t const bits = detail::copy_bits<float, uint32_t>(s);"
LONGER = RIGHT.replace("(s)", "(__frcp_rn(__frcp_rn(s) + 3.0f) * s)")


@pytest.mark.parametrize(
    ("limit", "counts", "fails", "detail"),
    [
        ("43 0 0 1", (44, 1, 1, 1), True, "44 instructions, at most 43; 1 branches, at most 0; 1 local, at most 0"),
        ("* * 52 *", (5309, 9, 52, 9), False, "5309 instructions, 9 branches, 52 local, 9 f64"),
    ],
)
def test_a_count_above_its_limit_is_named(limit: str, counts: tuple[int, ...], fails: bool, detail: str) -> None:
    size, branches, local, f64 = counts
    listing = SimpleNamespace(size=size, branches=branches, local=local, f64=f64)
    found = check(limit, listing)  # type: ignore[arg-type]
    assert (found.verdict.failed, found.detail) == (fails, detail)


@pytest.mark.parametrize("text", ["", "{}", '{"counts": {"13.0": {"a/b": {"43 0 0": "sm_90"}}}}', '{"counts": []}'])
def test_a_damaged_record_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ManifestError, match="holds no counts"):
        recorded(file)


def test_every_record_is_of_a_probe_and_a_target_of_its_variant() -> None:
    catalog = load()
    for file in (data_root() / "records/counts").glob("*.json"):
        variant = catalog.variant(file.stem)
        probes = {p.id: p for target in variant.targets for p, _ in catalog.probes_of(variant, target)}
        for rows in recorded(file).values():
            assert not [name for name in rows if probes[name].kind is ProbeKind.HOST]
        data = json.loads(file.read_text())
        records = {compiler: {p: dict(r) for p, r in rows.items()} for compiler, rows in recorded(file).items()}
        assert record_counts.text(records, data["releases"]) == file.read_text(), "python -m tools.record_counts"


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
