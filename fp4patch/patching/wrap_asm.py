"""The edit ``wrap-asm``: each statement that converts floats to E2M1 gets a software twin beside it.

The statement stays, byte for byte, under the negated guard; the twin calls the encoder with the expressions in the
order that the PTX packs them. Every C++ expression is evaluated as often as in the statement: once. The twin is one C++
statement like the other, so that it may be the body of an ``if`` without braces.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from fp4patch.model import Drift, NothingToDo, Outcome, Rewritten, State, WrapAsm
from fp4patch.patching.asm import Binding, Scan, Statement, scan, split
from fp4patch.patching.cxx import BOM, Conditional, Directive, Kind, LexError, Source, Token, lex, words
from fp4patch.patching.floors import Floor, floors, leaves_out
from fp4patch.patching.ptx import NotUnderstood, Packed, evaluate

COLUMNS = 80
"""Width that generated lines keep to where they can: that of the trees' own clang-format."""

_CALLS = {1: "e2m1", 2: "e2m1_x2", 4: "e2m1_x4", 8: "e2m1_x8", 16: "e2m1_x16"}
_STRING = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)+'|(?P<string>"(?:[^"\\\n]|\\.)*")""", re.DOTALL)
_BEFORE_STATEMENT = frozenset({"{", "}", ";", ")", ":", "else", "do"})
_SHAPE = "the patch does not know this shape; please report it with the file's version"
_THEIRS = "take the tree as upstream released it, or leave this patch out"


class _Refused(Exception):  # noqa: N818 - it carries the refusal out of nested calls; wrap returns the value
    def __init__(self, expected: str, found: str, line: int | None, advice: str = _SHAPE, nearest: str = "") -> None:
        super().__init__(expected)
        self.drift = Drift(expected, found, line, nearest, advice)


@dataclass(frozen=True)
class Site:
    """One statement to be wrapped, and what it packs."""

    statement: Statement
    packed: tuple[Packed, ...]


@dataclass(frozen=True)
class Opened:
    """Floors that the software gets past."""

    floors: tuple[Floor, ...]
    ending: str
    """What is put behind their conditions, which get a parenthesis in front."""


def wrap(edit: WrapAsm, text: str, template: Callable[[str], str], options: Mapping[str, str]) -> Outcome:
    """The text with every encode statement guarded; NothingToDo if it has none; Drift if one is not understood.

    ``options``: ``encoder`` and ``guard``, see :class:`~fp4patch.model.WrapAsm`. ``template`` reads the encoder.
    """
    try:
        if sign := _needs_suffix(text, edit.unless):
            because = f"a file with `{sign}` compiles for targets with a suffix alone: its conversions stay as they are"
            return NothingToDo(State.NOT_NEEDED, because)
        source = lex(text)
        _ = source.conditionals  # they must pair before anything is said about them
        for rule in edit.retired:
            if source.find(words(rule.tokens)):
                return NothingToDo(rule.state, rule.because, rule.since)
        found = scan(source)
        if found.strange:
            odd = found.strange[0]
            raise _Refused("E2M1 conversions in asm statements only", odd.message, odd.line)
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
    except LexError as error:
        return Drift("C++ that can be read to its end", error.message, error.line, help="is this file whole?")
    except _Refused as refusal:
        return refusal.drift


def _options(options: Mapping[str, str]) -> tuple[str, str]:
    """The guard, on one line, and the encoder's name."""
    guard, encoder = " ".join(options.get("guard", "").split()), options.get("encoder", "")
    help_ = "set both for this patch in the variant: options.<patch> = { encoder = …, guard = … }"
    if not encoder.isidentifier():
        raise _Refused("an option `encoder`, the name of an encoder", repr(encoder), None, help_)
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
        raise _Refused("an option `guard`, a preprocessor condition", repr(guard), None, help_)
    return guard, encoder


def _reached(source: Source, statement: Statement, below: Sequence[Floor]) -> None:
    """Refuse a statement that stays under a condition below which nothing is done: software would not be reached."""
    for conditional, _ in enclosing(source, statement.start):
        if leaves_out(source, conditional) and not any(floor.conditional is conditional for floor in below):
            found = f"one under the #if of line {conditional.branches[0].opening.line}, whose #else does nothing"
            raise _Refused("a conversion that software can take the place of", found, statement.line)


def _needs_suffix(text: str, signs: Sequence[str]) -> str:
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
            raise _Refused("a file without fp4patch's own names", token.text, token.line, _THEIRS)
    surroundings = _Surroundings(source)
    sites = [Site(statement, _understood(statement)) for statement in found.encodes]
    notes: list[str] = []
    inserts: list[tuple[int, str]] = []
    for site in sites:
        notes += surroundings.check(site.statement, guard, below.floors)
        inserts += _inserts(source, site, f"!({guard})", f"fp4patch_{encoder}")
    for floor in below.floors:
        inserts.append((floor.condition[0].start, "("))
        inserts.append((floor.condition[-1].end, below.ending))
    if sites:
        at = surroundings.file_scope(sites[0].statement.start)
        inserts.append((at, _helper(source.text, at, helper(), encoder)))
    pieces, done = [], 0
    for offset, added in sorted(inserts, key=lambda insert: insert[0]):
        pieces += [source.text[done:offset], added]
        done = offset
    text = "".join([*pieces, source.text[done:]])
    lines = tuple(sorted({site.statement.line for site in sites} | {floor.line for floor in below.floors}))
    _prove(text, found.encodes, below, guard, lines[0])
    return Rewritten(text, lines, (*notes, *_decodes(found)))


def _decodes(found: Scan) -> list[str]:
    return [f"line {statement.line}: converts from E2M1, left alone" for statement in found.decodes]


def _understood(statement: Statement) -> tuple[Packed, ...]:
    for binding in (*statement.outputs, *statement.inputs):
        for token in binding.expression:
            if token.text in ("asm", "__asm__"):
                raise _Refused("expressions as operands", token.text, token.line)
    for binding in statement.inputs:
        if binding.operand.constraint != "f":
            constraint = f'"{binding.operand.constraint}"({_text(binding.expression)})'
            raise _Refused('floats as inputs of a conversion to E2M1, "f"', constraint, binding.expression[0].line)
    try:
        return evaluate(
            statement.template,
            [binding.operand for binding in statement.outputs],
            [binding.operand for binding in statement.inputs],
        )
    except NotUnderstood as refusal:
        line = statement.line_at(refusal.offset) if refusal.ptx else statement.line
        raise _Refused("PTX that packs E2M1 codes", refusal.message, line, nearest=refusal.ptx) from None


# --- where a statement stands ----------------------------------------------------------------------------------------


class _Surroundings:
    """Parentheses and conditionals around each token. An ``#else`` starts from the depth that its ``#if`` had."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parentheses: list[int] = []
        depth = 0
        at_if: list[int] = []
        for index, token in enumerate(source.tokens):
            if token.directive < 0:
                depth += (token.text == "(") - (token.text == ")")
            elif index == 0 or source.tokens[index - 1].directive != token.directive:
                name = source.directives[token.directive].name
                if name.startswith("if"):
                    at_if.append(depth)
                elif name.startswith("el"):
                    depth = at_if[-1]
                elif name == "endif":
                    at_if.pop()
            self.parentheses.append(depth)

    def enclosing(self, offset: int) -> list[tuple[Conditional, int]]:
        """The conditionals around an offset, outermost first, each with the branch that it stands in."""
        return enclosing(self.source, offset)

    def check(self, statement: Statement, guard: str, opened: Sequence[Floor]) -> list[str]:
        """Refuse where directives cannot go or somebody guards already; else what there is to report."""
        tokens = self.source.tokens
        before = next((t for t in reversed(tokens[: statement.first]) if t.directive < 0), None)
        if before is None or before.text not in _BEFORE_STATEMENT:
            found = f"`{before.text}`" if before else "the start of the file"
            raise _Refused("a statement behind a statement", found, statement.line)
        if self.parentheses[statement.first]:
            raise _Refused("a statement outside parentheses", "one that may be a macro's argument", statement.line)
        notes = []
        for conditional, branch in self.enclosing(statement.start):
            opening = conditional.branches[0].opening
            said = [" ".join(t.text for t in b.condition) for b in conditional.branches]
            ours = (" ".join(words(guard)), " ".join(words(f"!({guard})")))
            if any(condition in ours or "1210" in condition.split() for condition in said):
                found = f"one in the #{opening.name} of line {opening.line}"
                raise _Refused("a conversion that nobody has guarded for SM121", found, statement.line, _THEIRS)
            other = [b for n, b in enumerate(conditional.branches) if n != branch and b.opening.name == "else"]
            if other and not any(floor.conditional is conditional for floor in opened):
                notes.append(
                    f"line {statement.line}: stands in an #{opening.name} (line {opening.line}) "
                    f"with an #else of its own (line {other[0].opening.line}), which still decides first"
                )
        return notes

    def file_scope(self, limit: int) -> int:
        """The offset of a line before ``limit`` at which declarations for the whole file can go.

        Behind the last #include of the leading block, else behind what guards the header, else before the first token.
        """
        source = self.source
        first_brace = next((t.start for t in source.tokens if t.directive < 0 and t.text == "{"), limit)
        limit = min(limit, first_brace)
        ranks: list[tuple[int, Directive]] = []
        whole = [c for c in source.conditionals if c.is_include_guard and c.closing.end == source.tokens[-1].end]
        for directive in source.directives:
            if directive.end > limit or any(c not in whole for c, _ in self.enclosing(directive.start)):
                continue
            once = directive.name == "pragma" and [t.text for t in directive.tokens] == ["once"]
            guards = any(directive is conditional.branches[0].body[0] for conditional in whole)
            if directive.name == "include" or once or guards:
                ranks.append((2 if directive.name == "include" else 1, directive))
        if not ranks:
            start = source.tokens[0].start
            return max(source.text.rfind("\n", 0, start) + 1, len(BOM) * source.text.startswith(BOM))
        best = max(ranks, key=lambda ranked: (ranked[0], ranked[1].start))[1]
        return self._next_line(best.end)

    def _next_line(self, offset: int) -> int:
        """The start of the line behind an offset and behind a comment that begins on its line."""
        while True:
            newline = self.source.text.find("\n", offset)
            end = len(self.source.text) if newline < 0 else newline + 1
            across = [c for c in self.source.comments if c.start < end <= c.end]
            if across:
                offset = across[-1].end
            elif self.source.text[:newline].rstrip("\r \t").endswith("\\"):  # the directive's line goes on
                offset = end
            else:
                return end


def enclosing(source: Source, offset: int) -> list[tuple[Conditional, int]]:
    """The conditionals around an offset, outermost first, each with the index of the branch that it stands in."""
    around = []
    for conditional in source.conditionals:
        if conditional.start < offset < conditional.closing.start:
            starts = [branch.opening.start for branch in conditional.branches]
            around.append((conditional, bisect_right(starts, offset) - 1))
    return around


# --- what is inserted ------------------------------------------------------------------------------------------------


def _inserts(source: Source, site: Site, condition: str, namespace: str) -> Iterable[tuple[int, str]]:
    """What goes before the statement and behind it, on lines of their own; the statement itself stays."""
    text, statement = source.text, site.statement
    line_start = text.rfind("\n", 0, statement.start) + 1
    lead = text[line_start : statement.start]
    indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
    newline_at = text.find("\n", statement.end)
    line_end = len(text) if newline_at < 0 else newline_at
    newline = "\r\n" if text[line_end - 1 : line_end + 1] == "\r\n" else "\n"
    before = text[:line_start].rstrip("\r\n")
    if line_start and before.rstrip(" \t").endswith("\\"):
        raise _Refused("a statement that begins a line", "a continued line before it", statement.line)
    start, opening = line_start, f"{indent}#if {condition}{newline}"
    if lead.strip():  # code on the statement's line stays on a line of its own
        start, opening = statement.start, f"{newline}{indent}#if {condition}{newline}{indent}"
    twin = _twin(source, site, namespace, len(indent.expandtabs(8)))
    rest = "".join(f"{line}{newline}" for line in (f"{indent}#else", *textwrap.indent(twin, indent).split("\n")))
    rest += f"{indent}#endif"
    tail = text[statement.end : line_end].strip()
    comments = [c for c in source.comments if c.start >= statement.end and c.end <= line_end]
    if not tail or (len(comments) == 1 and comments[0].text == tail):
        yield start, opening
        yield (line_end + 1, rest + newline) if newline_at >= 0 else (line_end, newline + rest)
    else:
        yield start, opening
        yield statement.end, newline + rest + newline


def _twin(source: Source, site: Site, namespace: str, indent: int) -> str:
    """One C++ statement that does in software what the asm statement does."""
    statement, packed = site.statement, site.packed
    used = Counter(n for output in packed for n in output.nibbles if n is not None)
    count = len(statement.outputs)
    arguments = {count + n: _argument(binding) for n, binding in enumerate(statement.inputs)}
    room = COLUMNS - indent
    # An asm statement reads its operands in their order; a call may evaluate its arguments in any.
    ordered = sum(_has_effects(binding.expression) for binding in statement.inputs) > 1
    direct = not ordered and all(used[number] == 1 for number in arguments)
    if len(packed) == 1 and direct:
        target = _target(statement.outputs[0])
        before = next(t for t in reversed(source.tokens[: statement.first]) if t.directive < 0)
        if before.text != ")" or target[0].isalpha() or target[0] == "_":
            return _assignment(f"{target} = ", packed[0], arguments, namespace, room)
    lines = []
    if not direct:  # each expression is evaluated once, used or not
        for number, argument in arguments.items():
            lines.append(f"const float fp4patch_in{number - count} = {argument};")
            if not used[number]:
                lines.append(f"static_cast<void>(fp4patch_in{number - count});")
            arguments[number] = f"fp4patch_in{number - count}"
    for output in packed:  # all inputs are read before any output is written
        declared = f"const auto fp4patch_out{output.operand} = "
        lines.append(_assignment(declared, output, arguments, namespace, room - 2))
    lines += [f"{_target(binding)} = fp4patch_out{n};" for n, binding in enumerate(statement.outputs)]
    return "{\n" + "\n".join(textwrap.indent(line, "  ") for line in lines) + "\n}"


def _assignment(target: str, output: Packed, arguments: Mapping[int, str], namespace: str, room: int) -> str:
    """``target = ::fp4patch_x::e2m1_x8(…);``, broken into lines where it is long. Zeros are passed as 0.0f."""
    nibbles = list(output.nibbles)
    while nibbles and nibbles[-1] is None:
        nibbles.pop()
    if not nibbles:
        return f"{target}0;"
    size = next(size for size in _CALLS if size >= len(nibbles))
    nibbles += [None] * (size - len(nibbles))
    values = ["0.0f" if number is None else arguments[number] for number in nibbles]
    call = f"{target}::{namespace}::{_CALLS[size]}("
    one_line = f"{call}{', '.join(values)});"
    if len(one_line) <= room:
        return one_line
    lines, line = [call], "    "
    for number, value in enumerate(values):
        piece = value + (");" if number + 1 == len(values) else ",")
        if line.strip() and len(line) + len(piece) + 1 > room:
            lines.append(line)
            line = "    "
        line += (" " if line.strip() else "") + piece
    return "\n".join([*lines, line])


def _argument(binding: Binding) -> str:
    text = _text(binding.expression)
    return f"({text})" if len(split(binding.expression, ",")) > 1 else text


def _target(binding: Binding) -> str:
    """The output as the left side of an assignment: in parentheses unless it is names, members and elements."""
    text, depth, plain = _text(binding.expression), 0, True
    expression = binding.expression
    for index, token in enumerate(expression):
        depth -= token.text in ")]"
        if depth == 0 and token.kind is Kind.MARK and token.text not in ".:()[]":
            arrow = token.text in "->" and any(
                a.text == "-" and b.text == ">" and a.end == b.start and token in (a, b)
                for a, b in pairwise(expression)
            )
            plain = plain and (arrow or (token.text == "*" and index == 0))
        depth += token.text in "(["
    return text if plain else f"({text})"


def _has_effects(expression: Sequence[Token]) -> bool:
    """Whether it may do more than read: a call, an increment, an assignment."""
    for before, token in pairwise(expression):
        call = token.text in "({" and (before.kind is Kind.NAME or before.text in ")]>")
        step = token.text == before.text and token.text in "+-" and before.end == token.start
        comparison = token.end == next((t.start for t in expression if t.start >= token.end and t.text == "="), -1)
        assigns = token.text == "=" and not comparison and not (before.text in "=!<>" and before.end == token.start)
        if call or step or assigns:
            return True
    return False


def _text(tokens: Sequence[Token]) -> str:
    """The tokens on one line, without comments; a blank where there was any space."""
    parts = [tokens[0].text]
    for before, token in pairwise(tokens):
        parts += [" " if before.end < token.start else "", token.text]
    return "".join(parts)


def _helper(text: str, at: int, helper: str, encoder: str) -> str:
    """The encoder's text, set off by blank lines, with the file's newlines."""
    if f"namespace fp4patch_{encoder} " not in helper:
        advice = "is the encoder's file whole?"
        raise _Refused(f"namespace fp4patch_{encoder} in its file", "another text", None, advice)
    crlf = text.count("\r\n")
    newline = "\r\n" if crlf > text.count("\n") - crlf else "\n"
    before, after = text[:at].removeprefix(BOM), text[at:]
    added = helper.replace("\r\n", "\n").strip("\n").replace("\n", newline) + newline
    if before and not before.endswith("\n"):
        added = newline + added
    if before.strip() and before.splitlines()[-1].strip():
        added = newline + added
    return added + ("" if after[:1] in ("", "\n", "\r") else newline)


def _prove(text: str, statements: Sequence[Statement], below: Opened, guard: str, line: int) -> None:
    """Read the result again: the same statements, byte for byte, and each alone under the negated guard.

    As many conditions as there were floors to open must be open now.
    """
    try:
        result = lex(text)
        found = scan(result)
        negated = words(f"!({guard})")
        same = [s.template for s in found.encodes] == [s.template for s in statements] and not found.strange
        bare = [s.line for s in found.encodes if not _guarded(result, s, negated)]
        ending = words(below.ending)
        ends = [tuple(t.text for t in c.branches[0].condition[-len(ending) :]) for c in result.conditionals]
        same = same and ends.count(ending) == len(below.floors)
    except LexError:
        same, bare = False, []
    if not same or bare:
        what = f"a conversion outside it, line {bare[0]} of the result" if bare else "a result that reads otherwise"
        raise _Refused("every conversion to E2M1 under the guard", what, line)


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
