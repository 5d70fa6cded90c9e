"""Declarations of documents: fields, keys of another name, hidden fields, shown properties."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fp4patch.console import document
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, Report, key, shown
from fp4patch.core.results import Verdict


@dataclass(frozen=True)
class Part(Document):
    """A part."""

    target: Arch
    kind: Verdict = field(metadata=key("class"))
    code: bytes = field(default=b"\xff", metadata=HIDDEN)

    @property
    @shown("size")
    def length(self) -> int:
        """Number of bytes."""
        return len(self.code)


@dataclass(frozen=True)
class Whole(Report):
    """A document."""

    parts: tuple[Part, ...]
    names: dict[Verdict, int]


PART = {"target": "sm_121a", "class": "pass", "size": 1}


def test_a_document_has_the_fields_and_the_shown_properties_under_their_keys() -> None:
    found = document(Whole((Part(Arch.parse("12.1a"), Verdict.PASS),), {Verdict.FAIL: 2}))
    assert found == {"schema": 1, "parts": [PART], "names": {"fail": 2}}
    assert next(iter(found)) == "schema"


def test_a_name_that_is_not_utf8_survives() -> None:
    @dataclass(frozen=True)
    class Named(Report):
        """A document with a path."""

        path: Path

    assert document(Named(Path("a\udc80")))["path"] == "a\udc80"
