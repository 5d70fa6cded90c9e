"""Prove from the machine code that what a thread stores depends on its own record alone.

Each bit of each register is followed from what is not the thread's own input: registers that nothing wrote, indices and
sizes of the launch, words of constant bank 0. They may decide addresses. Where one may reach a stored value, or whether
something is stored, the code is reported with the instruction.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fp4patch.sass import flow as control
from fp4patch.sass.listing import Constant, Decoded, Integer, Listing, Register
from fp4patch.sass.operands import LAYOUTS, Layout, Operands, name
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.text import STEP

_ALL = 0xFFFF_FFFF
State = dict[str, dict[str, int]]
"""For each variable, the bits that a source may reach: by the source's name, a mask."""


@dataclass(frozen=True)
class Leak:
    """A stored value that depends on something else than the thread's input."""

    source: str
    """``R5, which nothing wrote,``, ``blockIdx.x``, ``the stack pointer``."""
    instruction: Decoded

    def __str__(self) -> str:
        """Return ``blockIdx.x reaches what 0x01e0 STG.E desc[UR4][R2.64],R7 stores, or whether it does``."""
        at = self.instruction
        return f"{self.source} reaches what {at.address:#06x} {at.text} stores, or whether it does"


def leaks(listing: Listing, graph: control.Flow) -> list[Leak]:
    """Return the forbidden sources that reach a stored value, one of each; empty if there are none."""
    layout = LAYOUTS[listing.arch[0]]
    walk = _Walk(graph, layout)
    found: dict[str, Leak] = {}
    for instruction, state, guarded in walk.stores():
        bits = {"8": 0xFF, "16": 0xFFFF}.get(_width(instruction), _ALL)
        reached = dict(guarded)
        for variable in walk.stored(instruction):
            reached |= {source: mask for source, mask in _of(state, variable).items() if mask & bits}
        for source in reached:
            found.setdefault(source, Leak(source, instruction))
    return list(found.values())


def _width(instruction: Decoded) -> str:
    """Return the bits that a store writes, as its opcode names them; sm_75 adds the scope."""
    return instruction.opcode.removesuffix(".SYS").rpartition(".")[2].removeprefix("U")


def _of(state: State, variable: str) -> dict[str, int]:
    """Return the sources that may have reached a variable; its own name if nothing wrote it."""
    if variable in state:
        return state[variable]
    return {f"{variable.upper()}, which nothing wrote,": _ALL}


class _Held:
    """The registers within a block; of those written on a condition, what they hold where it is met, and where not."""

    def __init__(self, state: State) -> None:
        self.state = dict(state)
        self._cases: dict[tuple[str, bool], State] = {}

    def where(self, guard: Register | None, *, otherwise: bool = False) -> State:
        """Return the registers where a condition is met, or ``otherwise``."""
        if guard is None or guard.index is None:
            return self.state
        return self.state | self._cases.get((name(guard), guard.inverted != otherwise), {})

    def write(self, found: State, guard: Register | None) -> None:
        """Registers get what is found, if the guard holds."""
        for variable, mask in found.items():
            new = {source: bits for source, bits in mask.items() if bits}
            if guard and guard.index is not None and variable != name(guard):
                met = (name(guard), guard.inverted)
                unmet = (met[0], not guard.inverted)
                old = self._cases.get(unmet, {}).get(variable, _of(self.state, variable))
                for key, case in self._cases.items():
                    if key not in (met, unmet) and variable in case:
                        case[variable] = _union(case[variable], new)
                self._cases.setdefault(met, {})[variable] = new
                self._cases.setdefault(unmet, {})[variable] = old
                new = _union(new, old)
            else:
                for case in self._cases.values():
                    case.pop(variable, None)
                if guard and guard.index is not None:
                    new = _union(new, _of(self.state, variable))
            for key in [key for key in self._cases if key[0] == variable]:
                del self._cases[key]
            self.state[variable] = new


def _union(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {source: one.get(source, 0) | other.get(source, 0) for source in one.keys() | other.keys()}


class _Walk:
    """Follows the code to a fixed point."""

    def __init__(self, graph: control.Flow, layout: Layout) -> None:
        self._layout = layout
        self._blocks = {block.start: block for block in graph.blocks}
        self._entry = graph.blocks[0].start
        self._after = {block.start: self._successors(block, graph) for block in graph.blocks}
        self._known: dict[int, tuple[list[str], list[str]]] = {}
        self._guards: dict[int, dict[str, int]] = {}
        """For each block, what decides whether it is executed."""
        self._states: dict[int, State] = {}
        while True:
            self._flow()
            guards = self._control()
            if guards == self._guards:
                break
            self._guards = guards

    @staticmethod
    def _successors(block: control.Block, graph: control.Flow) -> tuple[int, ...]:
        last = block.instructions[-1]
        if last.opcode in control.RETURN:
            return graph.returns
        if last.opcode in control.CALL:
            return (control.target(last), *((last.address + STEP,) if last.predicate else ()))
        return block.goes_to

    def variables(self, instruction: Decoded) -> tuple[list[str], list[str]]:
        """Return the variables that an instruction writes, and those that it reads."""
        if instruction.address not in self._known:
            operands = Operands(instruction, self._layout, grid=True)  # whole grids have more opcodes
            if instruction.opcode not in control.CONTROL:
                TABLE[instruction.opcode].emit(operands)
            self._known[instruction.address] = operands.written, sorted(operands.sources)
        return self._known[instruction.address]

    def stored(self, instruction: Decoded) -> list[str]:
        """Return the registers of a stored value."""
        last = instruction.operands[-1]
        if not isinstance(last, Register) or last.index is None:
            return []
        words = {"64": 2, "128": 4}.get(_width(instruction), 1)
        return [name(Register(last.file, last.index + step)) for step in range(words)]

    def stores(self) -> Iterator[tuple[Decoded, State, dict[str, int]]]:
        """Yield every store, with the registers as they are there, and what decides whether it is executed."""
        for start, state in self._states.items():
            held = _Held(state)
            for instruction in self._blocks[start].instructions:
                if instruction.opcode.startswith("ST"):
                    seen = held.where(instruction.predicate)
                    yield instruction, seen, self._guards.get(start, {}) | self._predicate(instruction, held.state)
                self._execute(instruction, held, self._guards.get(start, {}))

    def _predicate(self, instruction: Decoded, state: State) -> dict[str, int]:
        guard = instruction.predicate
        return _of(state, name(guard)) if guard and guard.index is not None else {}

    # values

    def _flow(self) -> None:
        self._states = {self._entry: {}}
        pending = deque([self._entry])
        while pending:
            start = pending.popleft()
            held = _Held(self._states[start])
            for instruction in self._blocks[start].instructions:
                self._execute(instruction, held, self._guards.get(start, {}))
            last = self._blocks[start].instructions[-1]
            for following in self._after[start]:
                # Behind a branch its condition is known.
                simple = len(last.operands) < 2 and last.opcode in control.CONTROL and len(self._after[start]) > 1
                goes_on = following == last.address + STEP
                state = held.where(last.predicate if simple else None, otherwise=goes_on)
                known = self._states.get(following)
                joined = state if known is None else _joined(known, state)
                if joined != known:
                    self._states[following] = dict(joined)
                    pending.append(following)

    def _execute(self, instruction: Decoded, held: _Held, guarded: Mapping[str, int]) -> None:
        if instruction.opcode in control.CONTROL:
            return
        written, named = self.variables(instruction)
        if not written:
            return
        state = held.where(instruction.predicate) if instruction.predicate else _where_it_counts(instruction, held)
        always = dict.fromkeys((*guarded, *self._predicate(instruction, held.state)), _ALL)
        reached = self._reached(instruction, state, written, named)
        found = {variable: {**reached.get(variable, {}), **always} for variable in written}
        held.write(found, instruction.predicate)

    def _reached(
        self, instruction: Decoded, state: State, written: list[str], named: list[str]
    ) -> dict[str, dict[str, int]]:
        opcode = instruction.opcode
        if opcode.startswith("LDG"):
            return {}  # the input; which record it is, the launches of the corners show
        if opcode.startswith(("SHFL", "LDS")):
            return {variable: {"another thread": _ALL} for variable in written}
        if opcode.startswith(("S2R", "S2UR")):
            special = str(instruction.operands[-1])
            axes = {"SR_TID.X": "threadIdx.x", "SR_CTAID.X": "blockIdx.x"}
            found = next((text for key, text in axes.items() if key in special), special)
            return {written[0]: {found: _ALL}}
        words = [self._constant(one) for one in instruction.operands if isinstance(one, Constant)]
        if opcode.startswith(("LDC", "ULDC")):
            (place,) = (one for one in instruction.operands if isinstance(one, Constant))
            return {
                variable: {self._constant(Constant(place.bank, place.offset + 4 * step)): _ALL}
                for step, variable in enumerate(written)
            }
        exact = _exact(instruction, state)
        if exact is not None and len(written) == 1 and not words:
            return {written[0]: exact}
        merged: dict[str, int] = dict.fromkeys(words, _ALL)
        upwards = opcode.split(".")[0].lstrip("U") in _CARRYING
        for variable in named:
            for source, bits in _of(state, variable).items():
                merged[source] = merged.get(source, 0) | (-(bits & -bits) & _ALL if upwards else _ALL)
        return {variable: dict.fromkeys(merged, _ALL) if "p" in variable else merged for variable in written}

    def _constant(self, place: Constant) -> str:
        offset, layout = place.offset, self._layout
        for size, at in (("blockDim", layout.block_size), ("gridDim", layout.grid_size)):
            if at <= offset < at + 12:
                return f"{size}.{'xyz'[(offset - at) // 4]}"
        if offset == layout.stack:
            return "the stack pointer"
        if layout.parameters <= offset < layout.parameters + 16:
            return f"the pointer in c[0x0][{offset & ~7:#x}]"
        return f"c[{place.bank:#x}][{offset:#x}], which is no parameter,"

    # what is executed at all

    def _control(self) -> dict[int, dict[str, int]]:
        """For each block, what the conditions of the branches that it may be skipped by depend on."""
        ends = self._postdominators()
        guards: dict[int, dict[str, int]] = {}
        for start, block in self._blocks.items():
            if start not in self._states or len(self._after[start]) + self._leaves(block) < 2:
                continue
            walked = _Held(self._states[start])
            for instruction in block.instructions[:-1]:
                self._execute(instruction, walked, self._guards.get(start, {}))
            last, held = block.instructions[-1], walked.state
            sources = self._predicate(last, held)
            for operand in last.operands:
                if not isinstance(operand, Register) or operand.index is None:
                    continue
                if operand.file in ("P", "UP") or last.opcode in control.INDEXED:
                    sources = sources | _of(held, name(operand))
            if sources:
                for skipped in self._between(start, ends):
                    guards[skipped] = guards.get(skipped, {}) | dict.fromkeys(sources, _ALL)
        return guards

    @staticmethod
    def _leaves(block: control.Block) -> int:
        last = block.instructions[-1]
        return int(last.opcode in control.EXIT and last.predicate is not None)

    def _postdominators(self) -> dict[int, set[int]]:
        """For each block, those that every way to the end goes through."""
        every = set(self._blocks)
        found = {start: set(every) for start in every}
        changed = True
        while changed:
            changed = False
            for start, block in self._blocks.items():
                ways = [found[one] for one in self._after[start]]
                if self._leaves(block) or not ways:
                    ways.append(set())
                through = set.intersection(*ways) | {start}
                if through != found[start]:
                    found[start], changed = through, True
        return found

    def _between(self, start: int, ends: Mapping[int, set[int]]) -> set[int]:
        """Blocks that may follow this one, and need not."""
        found, pending = set[int](), list(self._after[start])
        certain = ends[start] - {start}
        while pending:
            one = pending.pop()
            if one not in found and one not in certain:
                found.add(one)
                pending += self._after[one]
        return found


def _where_it_counts(instruction: Decoded, held: _Held) -> State:
    """Return the registers where a comparison decides: not where the predicate that it is joined with does so alone."""
    parts, last = instruction.opcode.split("."), instruction.operands[-1]
    joined = parts[-1] in ("AND", "OR") and "SETP" in parts[0]
    if not joined or not isinstance(last, Register) or last.file not in ("P", "UP"):
        return held.state
    return held.where(last, otherwise=parts[-1] == "OR")


def _joined(one: State, other: State) -> State:
    found: State = {}
    for variable in one.keys() | other.keys():
        found[variable] = _union(_of(one, variable), _of(other, variable))
    return found


# --- bits ------------------------------------------------------------------------------------------------------------

_CARRYING = frozenset({"IADD3", "VIADD", "IMAD", "LEA"})
"""Integer sums and products: a bit of a source reaches no lower bit of the result."""


def _exact(instruction: Decoded, state: State) -> dict[str, int] | None:
    """Bit by bit, for instructions that move bits or join them one by one; None for all others."""
    kind, operands = instruction.opcode.lstrip("U").split(".")[0], instruction.operands
    if kind in ("MOV",) and isinstance(operands[-1], (Register, Integer)):
        return _source(operands[-1], state)
    if kind == "PRMT" and isinstance(operands[2], Integer):
        return _permuted(operands[2].value, (_source(operands[1], state), _source(operands[3], state)))
    if kind == "LOP3" and isinstance(operands[0], Register) and operands[0].file in ("R", "UR"):
        return _logic(operands, state)
    if instruction.opcode.lstrip("U").startswith("SHF.") and isinstance(operands[2], Integer):
        return _shifted(instruction, state)
    if (
        instruction.opcode.lstrip("U") in ("IMAD.U32", "IMAD.SHL.U32", "IMAD.SHL", "IMAD.MOV.U32")
        and len(operands) == 4
    ):
        factor, addend = operands[2], operands[3]
        plain = isinstance(addend, Register) and addend.index is None
        if isinstance(factor, Integer) and plain and factor.value > 0 and factor.value & factor.value - 1 == 0:
            return {s: m * factor.value & _ALL for s, m in _source(operands[1], state).items()}
    return None


def _source(operand: object, state: State) -> dict[str, int]:
    if isinstance(operand, Register) and operand.index is not None:
        return _of(state, name(operand))
    return {}


def _permuted(selector: int, sources: tuple[dict[str, int], dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for byte in range(4):
        nibble = selector >> 4 * byte & 15
        for source, bits in sources[nibble >> 2 & 1].items():
            part = bits >> 8 * (nibble & 3) & 0xFF
            part = (0xFF if part & 0x80 else 0) if nibble & 8 else part
            found[source] = found.get(source, 0) | part << 8 * byte
    return found


def _logic(operands: tuple[object, ...], state: State) -> dict[str, int]:
    """Return a source's bit counts where the table depends on it, given the bits of immediates."""
    table = operands[4]
    assert isinstance(table, Integer)
    found: dict[str, int] = {}
    values = [_constant_value(one) for one in operands[1:4]]
    for which in range(3):
        sources = _source(operands[1 + which], state)
        if not sources:
            continue
        counts = sum(1 << bit for bit in range(32) if _depends(table.value, which, values, bit))
        for source, bits in sources.items():
            found[source] = found.get(source, 0) | bits & counts
    return found


def _constant_value(operand: object) -> int | None:
    if isinstance(operand, Integer):
        return operand.value & _ALL
    if isinstance(operand, Register) and operand.index is None:
        return _ALL if operand.inverted else 0
    return None


def _depends(table: int, which: int, values: list[int | None], bit: int) -> bool:
    weight = (4, 2, 1)[which]
    for row in range(8):
        fits = all(
            value is None or (value >> bit & 1) == (row >> 2 - at & 1) for at, value in enumerate(values) if at != which
        )
        if fits and not row & weight and (table >> row & 1) != (table >> (row | weight) & 1):
            return True
    return False


def _shifted(instruction: Decoded, state: State) -> dict[str, int] | None:
    """Return a shift of a pair by a number that is known."""
    _, low, count, high = instruction.operands
    assert isinstance(count, Integer)
    parts = instruction.opcode.split(".")
    left, signed, upper = parts[1] == "L", "S32" in parts or "S64" in parts, parts[-1] == "HI"
    if "W" in parts or not 0 <= count.value <= 32:
        return None
    found: dict[str, int] = {}
    for operand, at in ((low, 0), (high, 32)):
        for source, bits in _source(operand, state).items():
            wide = bits << at
            if signed and at and bits >> 31:
                wide |= _ALL << 64
            moved = wide << count.value if left else wide >> count.value
            found[source] = found.get(source, 0) | (moved >> 32 if upper else moved) & _ALL
    return found
