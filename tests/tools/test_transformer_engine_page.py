"""The page of TransformerEngine on a GPU agrees with its record, and the model of its random numbers is whole."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.pages import _made_part
from tools.pages.transformer_engine import PAGE, RECORD, main, record, tables

GPU = Path(__file__).parents[2] / "docs/gpu/transformer_engine"


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(GPU))
    import draws

    yield draws
    del sys.modules["draws"]


def test_the_page_has_the_tables_of_the_record() -> None:
    page = PAGE.read_text()
    assert _made_part.placed(page, "transformer-engine", tables(json.loads(RECORD.read_text()))) == page


def test_a_run_of_which_a_part_failed_is_not_recorded(tmp_path: Path) -> None:
    before = RECORD.read_bytes()
    (tmp_path / "check.json").write_text('{"kernels": {"failed": "an error"}}')
    (tmp_path / "train.json").write_text("{}")
    with pytest.raises(SystemExit, match="kernels failed"):
        main([str(tmp_path)])
    assert RECORD.read_bytes() == before
    with pytest.raises(SystemExit, match="kernels failed"):
        record(tmp_path)


def test_the_generator_gives_the_published_words(draws: Any) -> None:
    """Random123's known answers of Philox4x32-10, for a counter and a key of zeros."""
    assert [f"{word:08x}" for word in draws.philox(0, 0, 1, 4)[0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize(
    ("kernel", "sides"),
    [
        ("tuned", {"transpose": True}),
        ("tuned", {"transpose": False}),
        *(
            (kernel, {"identity": identity, "transpose": transpose})
            for kernel in ("squares", "any_input")
            for identity, transpose in ((True, True), (True, False), (False, True))
        ),
    ],
)
def test_each_four_values_of_a_matrix_get_one_word_of_their_own(
    kernel: str, sides: dict[str, bool], draws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbered(_seed: int, _offset: int, sequences: int, count: int) -> Any:
        return np.arange(1, sequences * count + 1, dtype=np.uint32).reshape(sequences, count)

    monkeypatch.setattr(draws, "philox", numbered)
    straight, turned = getattr(draws, kernel)(0, 0, 256, 384, **sides)
    assert (straight.shape, turned.shape) == ((256, 96), (384, 64))
    wanted = [words for words, side in ((straight, "identity"), (turned, "transpose")) if sides.get(side, True)]
    words = np.concatenate([side.ravel() for side in wanted])
    assert words.all()
    assert len(np.unique(words)) == len(words)
