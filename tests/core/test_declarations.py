"""Declarations of documents: fields, keys of another name, hidden fields, shown properties, values as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fp4patch.console import document
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, Report, Text, key, shown
from fp4patch.core.verdict import Verdict


@dataclass(frozen=True)
class Part(Document):
    """A part."""

    bits: Annotated[int, Text("{:#010x}".format)]
    target: Arch
    kind: Verdict = field(metadata=key("class"))
    code: bytes = field(default=b"\xff", metadata=HIDDEN)

    @property
    @shown("size")
    def length(self) -> int:
        """Number of bytes."""
        return len(self.code)

    @property
    def unseen(self) -> int:
        """A property that is no key."""
        return 0


@dataclass(frozen=True)
class PartOfTree(Part):
    """The same of a tree."""

    tree: Path = Path("a")


@dataclass(frozen=True)
class Whole(Report):
    """A document."""

    parts: tuple[Part, ...]
    names: dict[Verdict, int]


PART = {"bits": "0x0000000a", "target": "sm_121a", "class": "pass", "size": 1}


def test_a_document_has_the_fields_and_the_shown_properties_under_their_keys() -> None:
    found = document(Whole((Part(10, Arch.parse("12.1a"), Verdict.PASS),), {Verdict.FAIL: 2}))
    assert found == {"schema": 1, "parts": [PART], "names": {"fail": 2}}
    assert next(iter(found)) == "schema"


def test_a_derived_object_has_the_keys_of_its_base() -> None:
    @dataclass(frozen=True)
    class Trees(Report):
        """A document over trees."""

        parts: tuple[PartOfTree, ...]

    found = document(Trees((PartOfTree(10, Arch.parse("12.1a"), Verdict.PASS),)))
    assert found["parts"] == [PART | {"tree": "a"}]


def test_a_property_is_still_one_after_a_document_was_made() -> None:
    part = Part(10, Arch.parse("12.1a"), Verdict.PASS)
    document(Whole((part,), {}))
    assert (part.length, part.unseen) == (1, 0)


def test_a_name_that_is_not_utf8_survives() -> None:
    @dataclass(frozen=True)
    class Named(Report):
        """A document with a path."""

        path: Path

    assert document(Named(Path("a\udc80")))["path"] == "a\udc80"
