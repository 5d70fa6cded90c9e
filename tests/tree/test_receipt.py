import json
from pathlib import Path
from typing import Any

import pytest

from fp4patch.core.errors import Refused
from fp4patch.tree.receipt import Receipt, ReceiptFile, dumps, loads

RECEIPT = Receipt(
    fp4patch="0.1.0",
    target="cutlass",
    version="4.2.1",
    variant="next2",
    patches=("cutlass/e2m1-guard 1", "cutlass/e2m1-converter 1"),
    files={"include/cutlass/float_subbyte.h": ReceiptFile("0" * 64, "f" * 64, ("cutlass/e2m1-guard 1",))},
)


def broken(**change: Any) -> bytes:
    return json.dumps({**json.loads(dumps(RECEIPT)), **change}).encode()


def broken_file(path: str = "a.h", **change: Any) -> bytes:
    file = {"pristine_sha256": "0" * 64, "written_sha256": "f" * 64, "patches": [], **change}
    return broken(files={path: file})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        dumps(RECEIPT)[:-9],
        b'{"schema": 1}',
        broken(schema=2),
        broken(more="than we write"),
        broken(variant=None),
        broken(patches="cutlass/e2m1-guard 1"),
        broken(files=[]),
        broken(files={}),
        broken(files={"a.h": "x"}),
        broken_file(pristine_sha256="../../etc/passwd"),
        broken_file(written_sha256="F" * 64),
        broken_file(patches=[1]),
        broken_file(more=1),
        *(broken_file(path=path) for path in ("", ".", "/etc/passwd", "../a.h", "./a.h", "b//a.h", "a\0.h", "\ud800")),
        b"[" * 100_000,
    ],
)
def test_refuses_a_damaged_receipt_and_says_what_to_do(data: bytes) -> None:
    with pytest.raises(Refused, match=r"receipt\.json is damaged, or of another release") as refused:
        loads(data, Path("receipt.json"))
    assert "revert the tree with the fp4patch that patched it" in refused.value.help


def test_a_receipt_survives_its_document() -> None:
    assert loads(broken(), Path()) == RECEIPT
    assert dumps(RECEIPT) == dumps(loads(dumps(RECEIPT), Path()))
    assert not loads(broken_file(), Path()).files["a.h"].patches
