"""How often a command reads a text: counts do not depend on the machine, as times do."""

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Said
from small_cutlass import small_cutlass

from fp4patch.catalog import manifest
from fp4patch.cxx import edit, tokens

LONG = 1000
"""Characters of a file; what edits put into it is shorter, and read in many places."""


def test_apply_reads_each_file_and_each_result_once_or_twice_and_the_catalog_once(
    fp4patch: Callable[..., Said],
    pristine_tree: Callable[[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / "tree")
    read: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    real_read, real_loads = tokens.read, tomllib.loads

    def counted_read(text: str) -> tokens.Source:
        read[text] += len(text) > LONG
        return real_read(text)

    def counted_loads(text: str) -> object:
        tables[text] += 1
        return real_loads(text)

    for module in (tokens, edit):
        monkeypatch.setattr(module, "read", counted_read)
    monkeypatch.setattr(tomllib, "loads", counted_loads)
    tokens.lex.cache_clear()
    manifest.forget()
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    assert 0 < read.total() < 40
    assert max(read.values()) <= 2
    assert tables
    assert max(tables.values()) == 1
    read.clear()
    tables.clear()
    assert fp4patch("status", tree).status == 0
    assert not read.total()
    assert not tables
