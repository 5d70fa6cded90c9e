"""What the cache keeps, and that a directory in its way only costs time."""

from pathlib import Path

import pytest

from fp4patch.core.store import Store, key

NAME = key("a", b"b")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_value_comes_back_and_the_last_one_counts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.get(NAME) is None
    for value in ([1, "two", None], {"three": 3.5}):
        store.put(NAME, value)
        assert store.get(NAME) == value
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"no checksum", b"0\n[1]", b"\xff\n[1]"])
def test_a_damaged_value_is_a_miss(damage: bytes, tmp_path: Path) -> None:
    Store(tmp_path).put(NAME, [1])
    (kept,) = files(tmp_path)
    kept.write_bytes(damage)
    assert Store(tmp_path).get(NAME) is None


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(NAME, [1])
    (kept,) = files(tmp_path)
    kept.unlink()
    kept.mkdir()
    store.put(NAME, [1])
    assert files(tmp_path) == []
    (tmp_path / "file").write_text("")
    Store(tmp_path / "file").put(NAME, [1])
    assert [path.name for path in files(tmp_path)] == ["file"]


def test_no_two_sequences_of_texts_have_one_key() -> None:
    assert len({key("ab"), key("a", "b"), key("", "ab"), key("ab", ""), key()}) == 5
    assert key("a") == key(b"a")
