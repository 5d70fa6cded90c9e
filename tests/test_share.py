"""Shares of the longest tests are chosen by the commit, and can be chosen again."""

import subprocess
from pathlib import Path

import pytest
from share import SEED, first, seed, share


@pytest.fixture(autouse=True)
def _anew() -> None:
    seed.cache_clear()


def test_a_seed_chooses_the_same_share_again_and_another_seed_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    items = list(range(282))
    shares = []
    for chosen in ("one", "one", "two"):
        monkeypatch.setenv(SEED, chosen)
        seed.cache_clear()
        shares.append((share(items, 5, "sabotage"), first("mutants")))
        assert len(set(shares[-1][0])) == 5
    assert shares[0] == shares[1] != shares[2]
    assert share(items, 5, "another test") != shares[2][0]
    assert share(items, 500, "all") == items


def test_the_commit_chooses_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEED, raising=False)
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    assert seed() == (commit[:12] or "no commit")
