"""Declarations of documents: fields, keys of another name, hidden fields, shown properties."""

from dataclasses import dataclass, field
from pathlib import Path

from fp4patch.console import document
from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Report, key, shown
from fp4patch.core.results import Verdict


@dataclass(frozen=True)
class Declared(Report):
    """A document with a value of each kind."""

    path: Path
    targets: tuple[Arch, ...]
    names: dict[Verdict, int]
    kind: Verdict = field(metadata=key("class"))
    code: bytes = field(metadata=HIDDEN)

    @property
    @shown("size")
    def length(self) -> int:
        """Number of bytes."""
        return len(self.code)


def test_a_document_has_the_fields_and_the_shown_properties_under_their_keys() -> None:
    not_utf8 = Path("a\udc80")
    found = document(Declared(not_utf8, (Arch.parse("12.1a"),), {Verdict.FAIL: 2}, Verdict.PASS, b"\xff"))
    fields = {"path": "a\udc80", "targets": ["sm_121a"], "names": {"fail": 2}, "class": "pass"}
    assert found == {"schema": 1} | fields | {"size": 1}
    assert next(iter(found)) == "schema"
