"""Write a kernel's machine code as one C function that does what one thread does.

Registers become local variables, blocks labels, and each instruction its entry in the table of ``semantics``, with the
machine code beside it. The result needs ``runtime.h``, and nothing else.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources

from fp4patch.sass import flow as control
from fp4patch.sass.error import SassError
from fp4patch.sass.expressions import c, statements
from fp4patch.sass.listing import Decoded, Integer, read
from fp4patch.sass.operands import LAYOUTS, Lacks, Layout, Operands
from fp4patch.sass.program import Kernel
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.warps import TABLE as OF_WARPS

RUNTIME = "runtime.h"
"""The header that the C includes."""

LANE = """\
struct lane {
  uint32_t registers[SASS_REGISTERS];
  uint32_t at, line, kind, done, jumps; /* where the thread waits, and for what */
  uint32_t source[SASS_SOURCES], result[SASS_RESULTS]; /* what it gave, and what it got */
};"""


class Unsupported(SassError):  # noqa: N818 - the verdict's word
    """The table does not support this machine code. ``lacking`` has each opcode's first place, and why."""

    def __init__(self, message: str, *, remedy: str = "", lacking: tuple[str, ...] = ()) -> None:
        super().__init__(message, help=remedy or "; ".join(lacking))
        self.lacking = lacking


def runtime() -> str:
    """Return the text of ``runtime.h``."""
    return (resources.files("fp4patch.sass") / RUNTIME).read_text(encoding="utf-8")


def translate(
    text: str,
    *,
    arch: tuple[int, int],
    kernel: str = "",
    words: tuple[int, ...] = (),
    grid: bool = False,
    shared: int | None = None,
) -> Kernel:
    """C (gnu11) of one kernel of a cubin, from what ``nvdisasm -c`` wrote.

    LDG and STG take addresses as the host's own; constants come from ``launch->constants``, indices from ``launch``.
    ``grid``: for whole blocks of threads, which exchange values; each thread returns where it waits for others, and is
    called again. ``words`` are the kernel's own constants, and ``shared`` the bytes of its section
    of shared memory (else 48 KB), which only a grid can use. Unsupported, with every opcode
    and operand form that the table does not have; SassError if the listing is not understood.
    """
    listing = read(text, arch=arch, kernel=kernel, words=words)
    layout = LAYOUTS.get(listing.arch[0])
    if layout is None:
        raise Unsupported(
            f"sm_{listing.arch[0]}{listing.arch[1]} cannot be executed: where it keeps parameters is not known",
            remedy=f"known are the architectures of {', '.join(f'sm_{major}x' for major in sorted(LAYOUTS))}",
        )
    try:
        graph = control.flow(listing)
    except SassError:
        _statements(
            listing.instructions, layout, grid=grid, arch=listing.arch
        )  # an unknown opcode is the reason, where there is one
        raise
    reached = {instruction.address: instruction for block in graph.blocks for instruction in block.instructions}
    code = _statements(reached.values(), layout, grid=grid, arch=listing.arch)
    lines = list[str]()
    for number, block in enumerate(graph.blocks):
        after = graph.blocks[number + 1].start if number + 1 < len(graph.blocks) else None
        lines.append(f"{_label(block.start)}:;")
        for instruction in block.instructions:
            if instruction.opcode in control.CONTROL:
                lines += _jump(instruction, graph, after, Operands(instruction, layout))
            else:
                lines += code.statements[instruction.address]
        if block.goes_to and block.instructions[-1].opcode not in control.CONTROL and block.goes_to != (after,):
            lines.append(f"  goto {_label(block.goes_to[0])};")
    head = [*(_table(words) if grid else []), *_head(code.variables, _waits(lines) if grid else None)]
    lines += _tail(code.variables) if grid else ["}"]
    own = 48 << 10 if shared is None else max(0, shared - layout.shared)
    return Kernel("\n".join([*head, *lines, ""]), layout, listing, own)


# Example: SASS_WAIT(1a0
_WAIT = re.compile(r"\bSASS_(?:WAIT|BACKWARD)\(([0-9a-f]+)\b")


def _waits(lines: Iterable[str]) -> list[str]:
    """Return the addresses at which a thread may wait, and be called again."""
    return [found[1] for line in lines for found in _WAIT.finditer(line)]


@dataclass
class _Code:
    """C of each instruction that is not control flow, by address."""

    statements: dict[int, list[str]] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)


def _statements(instructions: Iterable[Decoded], layout: Layout, *, grid: bool, arch: tuple[int, int]) -> _Code:
    code = _Code()
    lacking: dict[tuple[str, str], Decoded] = {}
    for instruction in instructions:
        operands = Operands(instruction, layout, grid=grid, arch=arch)
        try:
            if instruction.opcode not in control.CONTROL:
                code.statements[instruction.address] = _statement(instruction, operands)
            elif instruction.predicate:
                operands.value(instruction.predicate)
            if instruction.opcode in control.BRANCH and operands.peek_predicate():
                operands.truth()
            if instruction.opcode in control.INDEXED | control.DIVERGENT | control.ANY:
                operands.only_in_a_grid()
            if instruction.opcode in control.RETURN | control.INDEXED:
                operands.word()
        except Lacks as why:
            lacking.setdefault((instruction.opcode, str(why)), instruction)
        code.variables |= operands.read
    if lacking:
        raise _unsupported(lacking)
    return code


def _unsupported(lacking: dict[tuple[str, str], Decoded]) -> Unsupported:
    opcodes = list(dict.fromkeys(opcode for opcode, _ in lacking))
    reasons = tuple(f"{at.address:#06x} {at.text}: {why}" for (_, why), at in lacking.items())
    return Unsupported(f"the executor does not support {', '.join(opcodes)}", lacking=reasons)


def _statement(instruction: Decoded, operands: Operands) -> list[str]:
    known = (OF_WARPS.get(instruction.opcode) if operands.grid else None) or TABLE.get(instruction.opcode)
    if known is None:
        raise Lacks("no such opcode in the table")
    operands.guard = operands.value(instruction.predicate) if instruction.predicate else None
    guard = c(operands.guard) if operands.guard and not known.joins else ""
    effects = known.emit(operands)
    body = statements(effects, instruction.address)
    head, comment = f"  if ({guard}) {{" if guard else "  {", instruction.text.replace("*/", "* /")
    return [f"  /* {instruction.address:#06x} {comment} */", f"{head} {body} }}"] if body else []


def _jump(instruction: Decoded, graph: control.Flow, after: int | None, operands: Operands) -> list[str]:
    """C of a control instruction. A jump backwards has a hook before it, by which a caller limits the run time."""
    if instruction.opcode in control.OPEN | control.DIVERGENT:
        return []
    conditions = [c(operands.value(instruction.predicate))] if instruction.predicate else []
    if instruction.opcode in control.BRANCH | control.EXIT and operands.peek_predicate():
        conditions.append(c(operands.truth()))
    if instruction.opcode in control.EXIT:
        action = "SASS_EXIT;"
    elif instruction.opcode in control.RETURN:
        cases = " ".join(f"case {place:#x}: goto {_label(place)};" for place in graph.returns)
        action = f"switch ({c(operands.word())}) {{ {cases} default: SASS_LOST; }}"
    elif instruction.opcode in control.CALL and not isinstance(instruction.operands[-1], Integer):
        action = "SASS_LOST;"
    elif instruction.opcode in control.INDEXED:
        places = control.indexed(instruction, graph.listing)
        cases = " ".join(f"case {value:#x}: goto {_label(place)};" for value, place in places.items())
        action = f"switch ({c(operands.word())}) {{ {cases} default: SASS_LOST; }}"
    else:
        is_meeting = instruction.opcode in control.MEET
        there = graph.meets[instruction.address] if is_meeting else control.target(instruction)
        if there == after:
            return []
        back = f"SASS_BACKWARD({instruction.address:x}); " if there <= instruction.address else ""
        action = f"{back}goto {_label(there)};"
    condition = " & ".join(f"({one})" for one in conditions)
    if instruction.opcode in control.ANY:
        asked = f"lane->source[0] = {condition}; SASS_WAIT({instruction.address:x}, SASS_VOTE);"
        return [f"  {{ {asked} if (lane->result[1]) goto {_label(there)}; }}"]
    return [f"  if ({condition}) {{ {action} }}" if conditions else f"  {action}"]


def _table(words: tuple[int, ...]) -> list[str]:
    """Return the kernel's own constants as C."""
    content = ", ".join(f"{word:#x}u" for word in words) or "0"
    return [f"static const uint32_t sass_own[] = {{{content}}};", f"enum {{ SASS_OWN = {4 * len(words)} }};"]


def _label(address: int) -> str:
    return f"at_{address:x}"


def _ordered(variables: Iterable[str]) -> list[str]:
    return sorted(variables, key=lambda one: (one.rstrip("0123456789"), int(one.lstrip("urp"))))


def _head(variables: Iterable[str], waits: Iterable[str] | None) -> list[str]:
    """Return the beginning of the function: what a register holds that nothing wrote is poison, which must not
    matter."""
    ordered = _ordered(variables)
    initial = "sass_poison(launch, {})" if waits is None else "lane->registers[{}]"
    declared = [
        f"  uint32_t {one} = {initial.format(number)}{' & 1u' if 'p' in one else ''};"
        for number, one in enumerate(ordered)
    ]
    if waits is None:
        return ["static void SASS_KERNEL(const struct launch *launch) {", "  (void)launch;", *declared]
    return [
        f"enum {{ SASS_REGISTERS = {len(ordered) or 1} }};",
        LANE,
        "static void SASS_KERNEL(const struct launch *launch, struct lane *lane) {",
        "  (void)launch;",
        *declared,
        "  switch (lane->at) {",
        *(f"    case 0x{at}: goto resume_{at};" for at in waits),
        "  }",
    ]


def _tail(variables: Iterable[str]) -> list[str]:
    """Return the end of a grid's function: where a thread waits, its registers are kept."""
    kept = [f"  lane->registers[{number}] = {one};" for number, one in enumerate(_ordered(variables))]
    return ["  SASS_EXIT;", "suspend:;", *kept, "}"]
