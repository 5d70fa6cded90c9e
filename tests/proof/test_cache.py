"""The cache gives back what was stored for the same files, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.store import key
from fp4patch.proof.cache import Cache, Dependency, Stored

HEADER, SYSTEM = Dependency("tree", "include/lib.h"), Dependency("file", "/usr/include/stdint.h")
OLD, NEW = Stored(b"\0old", "log of old"), Stored(b"\xffnew", "log of new")


def asked(**digests: str) -> object:
    known = {HEADER: digests.get("header", "h1"), SYSTEM: digests.get("system", "s1")}
    return known.get


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path)
    cache.store("name", [(HEADER, "h1"), (SYSTEM, "s1")], OLD)
    return cache


def find(cache: Cache, name: str = "name", **digests: str) -> Stored | None:
    return cache.find(name, asked(**digests))  # type: ignore[arg-type]


def test_unchanged_files_are_a_hit(cache: Cache) -> None:
    assert find(cache) == OLD


def test_a_changed_file_or_another_command_is_a_miss(cache: Cache) -> None:
    assert find(cache, header="h2") is None
    assert find(cache, system="s2") is None
    assert find(cache, name="another") is None
    assert cache.find("name", lambda _: None) is None, "the file is gone"


def test_both_sides_of_a_verify_are_kept(cache: Cache) -> None:
    cache.store("name", [(HEADER, "h2"), (SYSTEM, "s1")], NEW)
    assert find(cache) == OLD
    assert find(cache, header="h2") == NEW


def test_states_are_bounded(cache: Cache) -> None:
    for n in range(40):
        cache.store("name", [(HEADER, f"state {n}")], NEW)
    assert find(cache) is None
    assert find(cache, header="state 39") == NEW


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"0" * 64 + b"\n[]", b"\xff\x00"])
def test_a_damaged_entry_is_a_miss_and_can_be_written_again(cache: Cache, tmp_path: Path, damage: bytes) -> None:
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(damage)
    assert find(cache) is None
    cache.store("name", [(HEADER, "h1"), (SYSTEM, "s1")], OLD)
    assert find(cache) == OLD


def test_an_entry_that_is_not_what_was_stored_is_a_miss(cache: Cache, tmp_path: Path) -> None:
    (path,) = (path for path in tmp_path.rglob("*.json") if b"log of old" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"log of old", b"log of new"))
    assert find(cache) is None


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = Cache(tmp_path / "file")
    cache.store("name", [], OLD)
    assert find(cache) is None


def test_nothing_half_written_is_left(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.store("name", [(HEADER, "h2")], NEW)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".new-")]
    assert find(cache) == OLD


@given(st.lists(st.text()), st.lists(st.text()))
def test_no_two_sequences_share_a_key(one: list[str], other: list[str]) -> None:
    assert (key(*one) == key(*other)) == (one == other)
