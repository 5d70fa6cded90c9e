"""The edit ``wrap-asm``: each statement that converts floats to E2M1 gets a software twin beside it.

The statement stays, byte for byte, under the negated guard; the twin calls the encoder with the expressions in the
order that the PTX packs them. Every C++ expression is evaluated as often as in the statement: once. The twin is one C++
statement like the other, so that it may be the body of an ``if`` without braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fp4patch.model.edit import WrapAsm
from fp4patch.model.outcome import NothingToDo, Outcome, Rewritten
from fp4patch.model.state import State
from fp4patch.patching.asm import Scan, Statement, scan, split
from fp4patch.patching.cxx import Cut, Source, lex, spliced, words
from fp4patch.patching.cxx_edit import edit_cxx
from fp4patch.patching.floors import Floor, floors, leaves_out
from fp4patch.patching.lex_error import LexError
from fp4patch.patching.placement import THEIRS, Placement, enclosing
from fp4patch.patching.ptx import NotUnderstood, Packed, conversions, evaluate, is_encode
from fp4patch.patching.refusal import Refusal
from fp4patch.patching.twin import Site, encoder_text, inserts_for, text_of

_STRING = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)+'|(?P<string>"(?:[^"\\\n]|\\.)*")""", re.DOTALL)


@dataclass(frozen=True)
class Opened:
    """Floors that the software gets past."""

    floors: tuple[Floor, ...]
    ending: str
    """What is put behind their conditions, which get a parenthesis in front."""


def wrap(edit: WrapAsm, text: str, template: Callable[[str], str], options: Mapping[str, str]) -> Outcome:
    """The text with every encode statement guarded; NothingToDo if it has none; Drift if one is not understood.

    ``options``: ``encoder`` and ``guard``, see :class:`~fp4patch.model.edit.WrapAsm`. ``template`` reads the encoder.
    """
    if sign := needs_suffix(text, edit.unless):
        because = f"a file with `{sign}` compiles for targets with a suffix alone: its conversions stay as they are"
        return NothingToDo(State.NOT_NEEDED, because)
    return edit_cxx(text, edit.retired, partial(_wrap, edit, template, options))


def _wrap(
    edit: WrapAsm, template: Callable[[str], str], options: Mapping[str, str], source: Source
) -> Rewritten | NothingToDo:
    found = scan(source)
    if found.strange:
        odd = found.strange[0]
        raise Refusal("E2M1 conversions in asm statements only", odd.message, odd.line)
    concerned = found.encodes or any(source.find(words(name)) for name in edit.callers)
    every = floors(source, edit.floor, edit.allows, found) if edit.floor and concerned else ()
    below = tuple(floor for floor in every if not floor.why_closed)
    for statement in found.encodes if edit.floor else ():
        _reached(source, statement, below)
    if not found.encodes and not below:
        because = "; ".join(("no conversion from float to E2M1", *_decodes(found)))
        return NothingToDo(State.NOT_NEEDED, because, elsewhere=True)
    guard, encoder = _options(options)
    opening = f") || ({edit.lowered or 'defined(__CUDA_ARCH__)'} && ({guard}))"
    helper = partial(template, f"{edit.encoders}/{encoder}.cuh")
    return _wrapped(source, found, Opened(below, opening), guard, encoder, helper)


def _options(options: Mapping[str, str]) -> tuple[str, str]:
    """The guard, on one line, and the encoder's name."""
    guard, encoder = " ".join(options.get("guard", "").split()), options.get("encoder", "")
    help_ = "set both for this patch in the variant: options.<patch> = { encoder = …, guard = … }"
    if not encoder.isidentifier():
        raise Refusal("an option `encoder`, the name of an encoder", repr(encoder), advice=help_)
    try:
        read = lex(f"#if !({guard})\n#endif\n")
        sound = len(read.conditionals) == 1 and not read.comments and split(read.directives[0].tokens, ",")
        inside = read.directives[0].tokens[2:-1]
    except LexError:
        sound, inside = [], ()
    depth, lowest = 0, 0
    for token in inside:
        depth += (token.text == "(") - (token.text == ")")
        lowest = min(depth, lowest)
    if not (sound and inside) or depth or lowest:
        raise Refusal("an option `guard`, a preprocessor condition", repr(guard), advice=help_)
    return guard, encoder


def _reached(source: Source, statement: Statement, below: Sequence[Floor]) -> None:
    """Refuse a statement that stays under a condition below which nothing is done: software would not be reached."""
    for conditional, _ in enclosing(source, statement.start):
        if leaves_out(source, conditional) and not any(floor.conditional is conditional for floor in below):
            found = f"one under the #if of line {conditional.branches[0].opening.line}, whose #else does nothing"
            raise Refusal("a conversion that software can take the place of", found, statement.line)


def needs_suffix(text: str, signs: Sequence[str]) -> str:
    """The first of the signs that stands in a string of the text; empty if none does."""
    if any(sign in text for sign in signs):
        for literal in _STRING.finditer(text):
            for sign in signs:
                if literal["string"] and sign in literal["string"]:
                    return sign
    return ""


def _wrapped(
    source: Source, found: Scan, below: Opened, guard: str, encoder: str, helper: Callable[[], str]
) -> Rewritten:
    for token in source.tokens:
        if token.text.lower().startswith("fp4patch"):
            raise Refusal("a file without fp4patch's own names", token.text, token.line, advice=THEIRS)
    placement = Placement(source)
    sites = [Site(statement, _understood(statement)) for statement in found.encodes]
    notes: list[str] = []
    inserts: list[tuple[int, str]] = []
    for site in sites:
        notes += placement.check(site.statement, guard, below.floors)
        inserts += inserts_for(source, site, f"!({guard})", f"fp4patch_{encoder}")
    for floor in below.floors:
        inserts.append((floor.condition[0].start, "("))
        inserts.append((floor.condition[-1].end, below.ending))
    if sites:
        at = placement.file_scope(sites[0].statement.start)
        inserts.append((at, encoder_text(source.text, at, helper(), encoder)))
    lines = tuple(sorted({site.statement.line for site in sites} | {floor.line for floor in below.floors}))
    result = spliced(source, [Cut(offset, offset, added) for offset, added in inserts])
    return Rewritten(_proven(result, found.encodes, below, guard, lines[0]), lines, (*notes, *_decodes(found)))


def _decodes(found: Scan) -> list[str]:
    return [f"line {statement.line}: converts from E2M1, left alone" for statement in found.decodes]


def _understood(statement: Statement) -> tuple[Packed, ...]:
    for binding in (*statement.outputs, *statement.inputs):
        for token in binding.expression:
            if token.text in ("asm", "__asm__"):
                raise Refusal("expressions as operands", token.text, token.line)
    for binding in statement.inputs:
        if binding.operand.constraint != "f":
            constraint = f'"{binding.operand.constraint}"({text_of(binding.expression)})'
            raise Refusal('floats as inputs of a conversion to E2M1, "f"', constraint, binding.expression[0].line)
    try:
        return evaluate(
            statement.template,
            [binding.operand for binding in statement.outputs],
            [binding.operand for binding in statement.inputs],
        )
    except NotUnderstood as refusal:
        line = statement.line_at(refusal.offset) if refusal.ptx else statement.line
        raise Refusal("PTX that packs E2M1 codes", refusal.message, line, nearest=refusal.ptx) from None


def _proven(result: Source | None, statements: Sequence[Statement], below: Opened, guard: str, line: int) -> str:
    """Return the result's text: it has the same statements, byte for byte, and each alone under the negated guard.

    As many conditions as there were floors to open must be open now.
    """
    same, bare = False, list[int]()
    if result is not None and result.pairs:
        found = scan(result)
        negated = words(f"!({guard})")
        bare = [s.line for s in found.encodes if not _guarded(result, s, negated)]
        ending = words(below.ending)
        ends = [tuple(t.text for t in c.branches[0].condition[-len(ending) :]) for c in result.conditionals]
        same = [s.template for s in found.encodes] == [s.template for s in statements] and not found.strange
        same = same and ends.count(ending) == len(below.floors)
    if result is None or not same or bare:
        what = f"a conversion outside it, line {bare[0]} of the result" if bare else "a result that reads otherwise"
        raise Refusal("every conversion to E2M1 under the guard", what, line)
    return result.text


def unguarded(text: str, guard: str) -> Iterator[tuple[int, str]]:
    """Line and opcode of each conversion to E2M1 that is not under the negated guard, or that nothing explains."""
    try:
        source = lex(text)
        found = scan(source)
        for odd in found.strange:
            yield odd.line, odd.message
        for statement in found.encodes:
            if not _guarded(source, statement, words(f"!({guard})")):
                yield statement.line, next(filter(is_encode, conversions(statement.template)))
    except LexError as error:
        yield error.line, error.message


def _guarded(result: Source, statement: Statement, negated: tuple[str, ...]) -> bool:
    around = enclosing(result, statement.start)
    if not around:
        return False
    conditional, branch = around[-1]
    return (
        branch == 0
        and len(conditional.branches) == 2
        and conditional.branches[1].opening.name == "else"
        and tuple(token.text for token in conditional.branches[0].condition) == negated
    )
