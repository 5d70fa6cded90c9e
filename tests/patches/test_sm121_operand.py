"""`cutlass/sm121-operand`: what public scripts do to CUTLASS's conditions is recognised, and taken back."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import apply_and_verify
from small_cutlass import GUARD, small_cutlass

from fp4patch import cli
from fp4patch.catalog.manifest import forget

GetTree = Callable[[str, str], Path]


def by_sed(text: str) -> str:
    """`sed 's/ || defined(CUTLASS_ARCH_MMA_SM121A_ENABLED)//'`, and the same for the family."""
    return re.sub(r" \|\| defined\(CUTLASS_ARCH_MMA_SM121[AF]_ENABLED\)", "", text)


def remove(tree: Path) -> tuple[str, str]:
    """Upstream's text, and what the script makes of it."""
    upstream = (tree / GUARD).read_text()
    (tree / GUARD).write_text(by_sed(upstream))
    assert by_sed(upstream) != upstream
    return upstream, by_sed(upstream)


def states(tree: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The tree's state and the patch's."""
    capsys.readouterr()
    assert cli.run(["status", "--json", str(tree)]) == 0
    (document,) = json.loads(capsys.readouterr().out)["trees"]
    return document["state"], next(p["state"] for p in document["patches"] if p["patch"] == "cutlass/sm121-operand")


@pytest.mark.parametrize("version", ["4.2.1", "4.5.0"])
def test_native_gives_upstreams_condition_back_and_revert_the_tree_as_it_was(
    whole_tree: GetTree, tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = small_cutlass(whole_tree("cutlass", version), tmp_path / "small")
    assert states(tree, capsys) == ("pristine", "not-needed")
    upstream, removed = remove(tree)
    assert states(tree, capsys) == ("reversed", "reversed")
    assert cli.run(["apply", "--variant", "native", str(tree)]) == 0
    assert "someone took CUTLASS_ARCH_MMA_SM121A_ENABLED" in capsys.readouterr().out
    written = (tree / GUARD).read_text()
    assert re.sub(r"\n// fp4patch native: .*\n$", "\n", written) == upstream
    assert states(tree, capsys) == ("applied", "applied")
    assert cli.run(["revert", str(tree)]) == 0
    assert (tree / GUARD).read_text() == removed


def test_the_machine_code_has_the_instruction_again(whole_tree: GetTree, probes: Callable[..., Path]) -> None:
    names = ("float-to-e2m1-x8", "e2m1-to-half-x8")
    probes("cutlass", *names)
    forget()
    tree = whole_tree("cutlass", "4.2.1")
    remove(tree)
    status, document = apply_and_verify(tree, "native", "--arch", "sm_120a,sm_121a")
    assert (status, document["verdict"]) == (0, "pass")
    found = {(r["probe"].removeprefix("cutlass/"), r["arch"]): r for r in document["results"]}
    # CUDA 13.0.88.
    encoded = found["float-to-e2m1-x8", "sm_121a"]
    assert [(encoded[side]["instructions"], encoded[side]["fp4"]) for side in ("before", "after")] == [
        (867, 0),
        (19, 4),
    ]
    decoded = found["e2m1-to-half-x8", "sm_121a"]
    assert (decoded["before"]["instructions"], decoded["after"]["instructions"]) == (812, 17)
    assert all(found[probe, "sm_120a"]["identical"] for probe in names)
