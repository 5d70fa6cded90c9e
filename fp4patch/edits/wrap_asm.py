"""The edit ``wrap-asm``: each statement that converts floats to E2M1 gets a software fallback beside it.

The statement stays, byte for byte, under the negated guard; the software fallback calls the encoder with the
expressions in the order that the PTX packs them. Every C++ expression is evaluated as often as in the statement: once.
The software fallback is one C++ statement like the other, so that it may be the body of an ``if`` without braces.
Conversions to nearest and stochastic ones have a guard and an encoder each: not every target that has one instruction
has the other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fp4patch.core.lex_error import LexError
from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import FolderBeside
from fp4patch.cxx.condition import evaluate as value_of
from fp4patch.cxx.edit import Cut
from fp4patch.cxx.text import COMMENT, literals
from fp4patch.cxx.tokens import Conditional, Source, lex, words
from fp4patch.edits.arch_floors import floors, leaves_out
from fp4patch.edits.asm import Scan, Statement, scan
from fp4patch.edits.conversions import CALLS, DISGUISED, INSTRUCTIONS, PUT_TOGETHER, calls, disguised
from fp4patch.edits.cxx_code import retirement
from fp4patch.edits.language import language as language_of
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import Change, Mistake, Operation, PatchedTree, Place, Retired, Search, Template
from fp4patch.edits.placement import THEIRS, Placement, enclosing, gates
from fp4patch.edits.ptx import Packed, conversions, evaluate, is_encode, is_stochastic
from fp4patch.edits.python_source import read as read_module
from fp4patch.edits.python_texts import UNKNOWN, texts
from fp4patch.edits.refusal import Refusal
from fp4patch.edits.software_fallback import Choice, Site, encoder_text, inserts_for, text_of

INPUTS = frozenset("fhrl")
"""Constraints of the inputs that are understood."""

_OPCODE = re.compile(r"(?:\bcvt\.[\w.:]*)?e2m1x[0-9]\.[\w.:]*")
"""A conversion to E2M1, or the end of one: in a conversion from E2M1 the format comes last."""
_IN_PYTHON = "no preprocessor condition reaches Python's text: Triton and the CuTe DSL compile it for the GPU at hand"


@dataclass(frozen=True, kw_only=True)
class WrapAsm(Operation):
    """Give each inline-assembly statement that converts floats to E2M1 a software fallback and a guard that selects it.

    The files are found by content below ``search`` (globs, ``**`` allowed), since upstream moves them. The variant sets
    two options: ``encoder``, a file ``<encoders>/<encoder>.cuh`` that holds ``namespace fp4patch_<encoder>``; and
    ``guard``, the preprocessor condition under which the software is compiled. ``stochastic_encoder`` and
    ``stochastic_guard`` are the same for conversions with random bits; without them such a statement is refused.
    """

    op: Literal["wrap-asm"] = "wrap-asm"
    encoders: FolderBeside
    """Directory of the encoders, relative to the patch's directory."""
    floor: str = ""
    """Condition of an ``#if`` around code that does nothing, or returns zero, below it: ``__CUDA_ARCH__ >= 1000``.

    The edit adds ``|| (lowered && (guard))`` to such a condition, so that the software is compiled there. It leaves a
    condition whose other branches do the work themselves, and one around assembly of another kind.
    """
    lowered: str = ""
    """Condition of the oldest GPUs that have all other instructions used above the floor: ``__CUDA_ARCH__ >= 900``."""
    allows: tuple[str, ...] = ()
    """Prefixes of assembly that is allowed above the floor, since these GPUs have it: ``griddepcontrol.``."""
    callers: tuple[str, ...] = ()
    """Names of functions that convert. A file that uses one of them has such an ``#if`` too, even if it has no
    statement of its own."""
    gates: tuple[str, ...] = ()
    """Names that alone are the condition of an ``#if``, or of an ``if constexpr``, which selects a statement or an
    error. Such a condition around a statement is opened: ``true ||`` is put before the name."""
    unless: tuple[str, ...] = ()
    """Parts of PTX that is assembled only for targets with a suffix. A file with one of them in a string cannot lose
    the suffix and is left unchanged."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys with code."""
        return ("floor", "lowered", "callers")

    @property
    def reads(self) -> tuple[str, ...]:
        """No files: their contents decide."""
        return ()

    def passes_over(self, text: str, /) -> NothingToDo | None:
        """Return that a file stays as it is that compiles for targets with a suffix alone."""
        if sign := needs_suffix(text, self.unless):
            return NothingToDo(State.NOT_NEEDED, f"{_needs(sign)}: its conversions stay as they are")
        return None

    def change(self, source: Source, template: Template, options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return the change that guards every encode statement; NothingToDo if there is none. ``template`` reads an
        encoder."""
        return retirement(source, self.retired) or _wrap(self, template, options, source)

    def looks(self, language: str, /) -> Iterator[Look]:
        """Yield the looks of the searches and, for C++, what finds callers."""
        yield from super().looks(language)
        if language == self.language and self.callers:
            yield Look(words_of(*([name] for name in self.callers)))

    def searches(self, language: str, /) -> Iterator[Search]:
        """Yield the search for conversions in C++ and Python."""
        if language in (self.language, "python"):
            yield Search(INSTRUCTIONS, self._left)
        if language == self.language:
            yield Search(DISGUISED, lambda _tree, _file, text: _read(disguised, text))
            yield Search(CALLS, lambda _tree, _file, text: calls(text))
        if language == "python":
            yield Search(PUT_TOGETHER, lambda _tree, _file, text: _put_together(text))

    def _left(self, tree: PatchedTree, file: str, text: str, /) -> Iterator[Place]:
        if tree.folded(file) and not any(sign in text for sign in self.unless):
            return  # the fold has proven the files that it read
        if language_of(file) == "python":
            yield from _in_python(text)
            return
        try:
            if sign := needs_suffix(text, self.unless):
                if opcode := _OPCODE.search(text, max(0, text.find("e2m1x") - 80)):
                    yield Place(text.count("\n", 0, opcode.start()) + 1, opcode[0], _needs(sign))
            else:
                yield from (Place(line, found) for line, found in unguarded(lex(text), tree.options))
        except LexError as error:
            yield Place(error.line, error.message)

    def option_mistakes(self, options: Mapping[str, str], folder: Path, /) -> Iterator[Mistake]:
        """Yield options that are missing or not known, and encoders that are not there."""
        known = {"encoder", "guard"}
        if known < options.keys():
            known |= {f"{STOCHASTIC}{option}" for option in known}
        for option in sorted(known ^ options.keys()):
            if option in known:
                yield Mistake(option, "a value for this key", "none")
            else:
                yield Mistake(option, "no key of this name", f"{option} = {options[option]!r}")
        for option in sorted(option for option in options if option.endswith("encoder")):
            path = folder / self.encoders / f"{options[option]}.cuh"
            if not path.is_file():
                encoders = ", ".join(sorted(file.stem for file in path.parent.glob("*.cuh")))
                yield Mistake(option, f"one of {encoders}", repr(options[option]))
        for option in sorted(option for option in options if option.endswith("guard")):
            if not _is_condition(options[option]):
                yield Mistake(option, "a condition of the preprocessor", repr(options[option]))


def _read(search: Callable[[str], Iterable[Place]], text: str) -> Iterator[Place]:
    """Yield what a search finds, or the place where a text cannot be read."""
    try:
        yield from search(text)
    except LexError as error:
        yield Place(error.line, error.message)


def _in_python(text: str) -> Iterator[Place]:
    """Yield the conversions in a module's texts. It is parsed only if something of the mnemonic is in no whole one."""
    is_part = False
    for number, line in enumerate(text.split("\n"), 1):
        if "e2m1x" not in line:
            continue
        code = line.partition("#")[0]
        opcodes = _OPCODE.findall(code)
        if opcodes:
            yield Place(number, opcodes[0], _IN_PYTHON)
        is_part = is_part or code.count("e2m1x") > len(opcodes)
    if is_part:
        yield from _put_together(text)


def _put_together(text: str) -> Iterator[Place]:
    """Yield the conversions in texts that a module puts together, where no line of it has one."""
    lines = text.split("\n")
    seen: set[int] = set()
    try:
        for line, value in texts(read_module(text)):
            found = _ASSEMBLED.search(value)
            if found is None or line in seen:
                continue
            if not any("e2m1x" in part and _OPCODE.search(part) for part in lines[line - 1 : line + 40]):
                seen.add(line)
                yield Place(line, found[0].replace(UNKNOWN, "…"), _IN_PYTHON)
    except (SyntaxError, ValueError, RecursionError) as error:
        yield Place(1, f"{type(error).__name__}: {error}", "it cannot be read, and may have a conversion to E2M1")


# Example: cvt.rn.satfinite.e2m1x2.f32
_ASSEMBLED = re.compile(r"\bcvt\.[^;\n]*?\be2m1x[0-9\0]\.\w+")


def _wrap(edit: WrapAsm, template: Template, options: Mapping[str, str], source: Source) -> Change | NothingToDo:
    scanned = scan(source)
    if scanned.strange:
        odd = scanned.strange[0]
        raise Refusal("E2M1 conversions in asm statements only", odd.message, odd.line)
    concerned = scanned.encodes or any(source.find(words(name)) for name in edit.callers)
    below = tuple(floors(source, edit.floor, edit.allows, scanned)) if edit.floor and concerned else ()
    for statement in scanned.encodes if edit.floor else ():
        _reached(source, statement, below)
    if not scanned.encodes and not below:
        return NothingToDo(State.NOT_NEEDED, "no conversion from float to E2M1", elsewhere=True)
    return _wrapped(edit, template, _choices(options), source, scanned, below)


STOCHASTIC = "stochastic_"
"""The prefix of the options for stochastic conversions."""


def _choices(options: Mapping[str, str]) -> dict[bool, Choice]:
    """Return a variant's choice for conversions to nearest, and by True that for stochastic ones, if it takes any."""
    prefixes = {False: "", True: STOCHASTIC} if f"{STOCHASTIC}encoder" in options else {False: ""}
    return {
        is_stochastic: Choice(" ".join(options[f"{prefix}guard"].split()), options[f"{prefix}encoder"])
        for is_stochastic, prefix in prefixes.items()
    }


def _choice_for(statement: Statement, choices: Mapping[bool, Choice]) -> Choice:
    """Return the choice for a statement's conversions, which must be of one kind."""
    opcodes = [opcode for opcode in conversions(statement.template) if is_encode(opcode)]
    kinds = {is_stochastic(opcode) for opcode in opcodes}
    if len(kinds) == 1 and kinds <= choices.keys():
        return choices[kinds.pop()]
    expected = "conversions of one kind" if len(kinds) > 1 else "a conversion to nearest"
    raise Refusal(expected, ", ".join(sorted(set(opcodes))), statement.line)


def _is_condition(guard: str) -> bool:
    try:
        value_of(words(guard))
        return not COMMENT.search(guard)
    except ValueError:
        return False


def _reached(source: Source, statement: Statement, below: Sequence[Conditional]) -> None:
    """Refuse a statement that stays under a condition below which nothing is done: software would not be reached."""
    for conditional, _ in enclosing(source, statement.start):
        if leaves_out(source, conditional) and not any(floor is conditional for floor in below):
            found = f"one under the #if of line {conditional.branches[0].opening.line}, whose #else does nothing"
            raise Refusal("a conversion that software can take the place of", found, statement.line)


def _needs(sign: str) -> str:
    return f"a file with `{sign}` compiles for targets with a suffix alone"


def needs_suffix(text: str, signs: Sequence[str]) -> str:
    """Return the first of the signs in a string of the text; empty if there is none. LexError: it does not end."""
    if not any(sign in text for sign in signs):
        return ""
    return next((sign for string in literals(text) for sign in signs if sign in string), "")


def _wrapped(
    edit: WrapAsm,
    template: Template,
    choices: Mapping[bool, Choice],
    source: Source,
    scanned: Scan,
    below: Sequence[Conditional],
) -> Change:
    for token in source.tokens if "fp4patch" in "\n".join(source.words).lower() else ():
        if token.text.lower().startswith("fp4patch"):
            raise Refusal("a file without fp4patch's own names", token.text, token.line, advice=THEIRS)
    placement = Placement(source)
    sites = [Site(statement, _understood(statement), _choice_for(statement, choices)) for statement in scanned.encodes]
    gated = sites if edit.gates else []
    opened = {gate.name.start: gate for site in gated for gate in gates(source, site.statement, edit.gates)}
    inserts: list[tuple[int, str]] = []
    for site in sites:
        placement.check(site.statement, site.choice.guard)
        inserts += inserts_for(source, site)
    ending = f") || ({edit.lowered or 'defined(__CUDA_ARCH__)'} && ({choices[False].guard}))"
    for floor in below:
        condition = floor.branches[0].condition
        inserts += [(condition[0].start, "("), (condition[-1].end, ending)]
    inserts += [(start, gate.opening) for start, gate in opened.items()]
    if sites:
        at = placement.file_scope(sites[0].statement.start)
        headers = sorted({name for site in sites for name in site.headers})
        texts = (encoder_text(source.text, at, template(f"{edit.encoders}/{name}.cuh")) for name in headers)
        inserts.append((at, "".join(texts)))
    opened_lines = {floor.branches[0].opening.line for floor in below}
    lines = tuple(sorted({site.statement.line for site in sites} | opened_lines))
    cuts = [Cut(offset, offset, added) for offset, added in inserts]
    return Change(cuts, lines, prove=lambda result: _prove(result, scanned.encodes, choices, lines[0]))


def _understood(statement: Statement) -> tuple[Packed, ...]:
    for binding in (*statement.outputs, *statement.inputs):
        for token in binding.expression:
            if token.text in ("asm", "__asm__"):
                raise Refusal("expressions as operands", token.text, token.line)
    for binding in statement.inputs:
        if binding.operand.constraint not in INPUTS:
            constraint = f'"{binding.operand.constraint}"({text_of(binding.expression)})'
            raise Refusal("floats, or words that hold them, as inputs", constraint, binding.expression[0].line)
    outputs, inputs = ([binding.operand for binding in side] for side in (statement.outputs, statement.inputs))
    return evaluate(statement.template, outputs, inputs, statement.line)


def _prove(result: Source, statements: Sequence[Statement], choices: Mapping[bool, Choice], line: int) -> None:
    """Refuse a result unless it has the same statements, byte for byte, and each alone under the negated guard."""
    scanned = scan(result)
    bare = [s.line for s in scanned.encodes if not _guarded(result, s, choices)]
    if bare or scanned.strange or [s.template for s in scanned.encodes] != [s.template for s in statements]:
        what = f"a conversion outside it, line {bare[0]} of the result" if bare else "a result that reads otherwise"
        raise Refusal("every conversion to E2M1 under the guard", what, line)


def unguarded(source: Source, options: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Line and opcode of each conversion to E2M1 that is not under the negated guard, or that nothing explains."""
    scanned = scan(source)
    for odd in scanned.strange:
        yield odd.line, odd.message
    choices = _choices(options) if scanned.encodes else {}
    for statement in scanned.encodes:
        if not _guarded(source, statement, choices):
            yield statement.line, next(filter(is_encode, conversions(statement.template)))


def _guarded(result: Source, statement: Statement, choices: Mapping[bool, Choice]) -> bool:
    around = enclosing(result, statement.start)
    try:
        negated = words(f"!({_choice_for(statement, choices).guard})")
    except Refusal:
        return False
    if not around:
        return False
    conditional, branch = around[-1]
    return (
        branch == 0
        and len(conditional.branches) == 2
        and conditional.branches[1].opening.name == "else"
        and tuple(token.text for token in conditional.branches[0].condition) == negated
    )
