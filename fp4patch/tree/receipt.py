"""The record of the changes of a tree, as a value and as the JSON document in the tree."""

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from fp4patch.core.errors import Refused
from fp4patch.core.schema import SCHEMA
from fp4patch.core.tree_path import is_inside
from fp4patch.tree.files import STATE_DIR
from fp4patch.tree.remainder import Remainder


@dataclass(frozen=True)
class ReceiptFile:
    """One patched file: the SHA-256 (hex) of its pristine and of its written bytes, its permission bits before us."""

    pristine_sha256: str
    written_sha256: str
    mode: int
    patches: tuple[str, ...]
    """Those that changed it, in order: ``cutlass/e2m1-guard 1``."""


@dataclass(frozen=True)
class Receipt:
    """Record of the changes of a tree. ``files`` has each file that differs from its pristine bytes because of us."""

    fp4patch: str
    target: str
    version: str
    variant: str
    applied_at: str
    """UTC, ISO 8601."""
    patches: tuple[str, ...]
    """All of the variant's, with their versions, also those that had nothing to do: ``cutlass/e2m1-guard 1``."""
    files: dict[str, ReceiptFile]
    remainders: tuple[Remainder, ...] = ()
    """Places that the patches left as they are, each with the reason. No key in the document if there is none."""


def dumps(receipt: Receipt) -> bytes:
    """Return the document: stable order, so equal receipts are equal bytes."""
    document = {"schema": SCHEMA, **asdict(receipt)}
    if not receipt.remainders:
        del document["remainders"]
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def loads(data: bytes, where: str) -> Receipt:
    """Return the receipt in a document. Refused if it is of another schema, or not exactly what ``dumps`` writes."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or "schema" not in document:
            raise ValueError("no schema")
        if document["schema"] != SCHEMA:
            raise Refused(
                f"{where} was written by fp4patch {document.get('fp4patch', 'of another release')} "
                f"(schema {document['schema']}, this one reads {SCHEMA})",
                help="update fp4patch; or revert with the fp4patch that patched the tree, and apply with this one",
            )
        receipt = _receipt(document)
        if json.loads(dumps(receipt)) != document:
            raise ValueError("unknown or missing keys")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # json's own is a ValueError
        raise Refused(
            f"{where} is damaged ({error or type(error).__name__})",
            help=f"put back a pristine tree (git checkout, or fetch it again), and delete its {STATE_DIR} directory",
        ) from error
    return receipt


def _receipt(document: dict[str, Any]) -> Receipt:
    files = {
        _inside(path): ReceiptFile(
            _sha256(f["pristine_sha256"]), _sha256(f["written_sha256"]), _mode(f["mode"]), _words(f["patches"])
        )
        for path, f in document["files"].items()
    }
    if not files:
        raise ValueError("no files")  # and then there would be no receipt
    return Receipt(
        fp4patch=_word(document["fp4patch"]),
        target=_word(document["target"]),
        version=_word(document["version"]),
        variant=_word(document["variant"]),
        applied_at=_word(document["applied_at"]),
        patches=_words(document["patches"]),
        files=files,
        remainders=tuple(map(_remainder, document.get("remainders", ()))),
    )


def _remainder(document: dict[str, Any]) -> Remainder:
    line = document["line"]
    if type(line) is not int or line < 1:
        raise ValueError(f"{line!r} is not a line")
    texts = (_word(document[key]) for key in ("patch", "file", "found", "because"))
    patch, file, found, because = texts
    return Remainder(patch, _inside(file), line, found, because)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return tuple(_word(item) for item in value)


def _inside(path: str) -> str:
    """Return a file of the tree, by the one name that it has."""
    if not is_inside(path):
        raise ValueError(f"{path!r} is not a path inside the tree")
    os.fsencode(path)  # UnicodeEncodeError, a ValueError: no file has such a name
    return path


def _sha256(value: object) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", _word(value)):
        raise ValueError(f"{value!r} is not a SHA-256")
    return str(value)


def _mode(value: object) -> int:
    if type(value) is not int or not 0 <= value <= 0o777:
        raise ValueError(f"{value!r} is not a mode")
    return value
