"""The page of verify: one HTML file without network, with the machine code before and after side by side.

``verify_page.html.j2`` lays it out and escapes everything. The listings are compressed data, which ``verify_page.js``
shows when one is opened.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import filterfalse

from fp4patch.catalog.probe import ProbeKind
from fp4patch.commands import templates, verify_text
from fp4patch.console import problem_lines
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import ProbeResult, VerifyReport, headline, reason
from fp4patch.sass.instruction import Instruction, InstructionClass

REMOVED = "\N{MINUS SIGN}"
COLOURED = {InstructionClass.FP4: "fp4", InstructionClass.BRANCH: "branch", InstructionClass.LOCAL: "local"}
"""CSS class of the instructions that rules require or forbid: the others have the colour of text."""


def page(reports: Sequence[VerifyReport]) -> str:
    """Return the page over the trees of one verify as a complete string: no request, one script, everything escaped."""
    rendered = templates.page(
        "verify_page",
        head=headline(reports),
        reports=reports,
        texts=verify_text,
        problem_lines=problem_lines,
        reason=reason,
        packed_rows=packed_rows,
        by_change=by_change,
    )
    # A path that is not UTF-8 arrives as lone surrogates, which no file can hold.
    return rendered.encode("utf-8", "backslashreplace").decode("utf-8")


def by_change(results: Sequence[ProbeResult]) -> tuple[list[ProbeResult], list[ProbeResult]]:
    """Return the rows that failed or changed, the greatest difference first, and the others."""
    changed = sorted(filter(verify_text.differs, results), key=verify_text.by_effect)
    return changed, [*filterfalse(verify_text.differs, results)]


def packed_rows(result: ProbeResult) -> str:
    """Return the rows of both listings: the mark of the difference, and each side's instruction; empty if none."""
    before, after = result.before, result.after
    if result.identical and result.kind is ProbeKind.UNIT:
        return ""  # a whole source file can have tens of thousands of rows, which all say the same
    rows = aligned(*(side.instructions if side else () for side in (before, after)))
    shown = [(mark, _side(before, old), _side(after, new)) for mark, old, new in rows]
    return templates.packed(shown) if shown else ""


# R12, UR4, P0, UP1, B0, SB0; RZ, URZ, PT and UPT are constants and stay.
_NUMBERED = re.compile(r"\b(U?R|U?P|S?B)\d+\b")
_LABEL = re.compile(r"`\([.$\w]+\)")


def aligned(
    before: Sequence[Instruction], after: Sequence[Instruction]
) -> Iterator[tuple[str, Instruction | None, Instruction | None]]:
    """Yield the rows of a side-by-side comparison, each with its mark: removed, added, other operands, or none.

    The registers of two compilations are numbered anew, so numbering alone is no difference; labels neither.
    """
    # No "junk": in machine code the frequent opcodes are as significant as the rare ones.
    matcher = SequenceMatcher(None, [code.opcode for code in before], [code.opcode for code in after], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for old, new in zip(before[i:i_end], after[j:j_end], strict=True):
                plain = {_LABEL.sub("label", _NUMBERED.sub(r"\1", code.text)) for code in (old, new)}
                yield "~" if len(plain) > 1 else "", old, new
        else:
            yield from ((REMOVED, old, None) for old in before[i:i_end])
            yield from (("+", None, new) for new in after[j:j_end])


def _side(listing: SassListing | None, code: Instruction | None) -> tuple[str, str, str, str] | None:
    """Return an instruction's label, address, text and CSS class."""
    if listing is None or code is None:
        return None
    label = listing.labels.get(code.address, "")
    return label, f"{code.address:04x}", code.text, COLOURED.get(code.cls, "")
