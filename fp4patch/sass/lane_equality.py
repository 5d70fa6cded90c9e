"""Prove from the machine code that each code is a function of one value alone, and which one.

Every stored code is followed back to the values of the thread's record, bit by bit, through branches too. Lanes whose
codes are the same function of their own value are *alike*: all inputs through one of them are all inputs through each.
No bit of an index, a pointer or a register that nothing wrote can reach a code that is such a function.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import count

from fp4patch.sass import flow as control
from fp4patch.sass.bit_functions import NO, ONE, OTHER, ZERO, Bit, Symbols, Word, number
from fp4patch.sass.error import SassError
from fp4patch.sass.expressions import Set, Store
from fp4patch.sass.folding import Folder, NotFollowedError, extended
from fp4patch.sass.listing import Decoded, Listing
from fp4patch.sass.operands import LAYOUTS, Lacks, Layout, Operands
from fp4patch.sass.semantics import TABLE
from fp4patch.sass.text import STEP


def lane_functions(
    listing: Listing, graph: control.Flow, *, lanes: int, bits: int, stored: int, symbols: Symbols | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the function of each lane's own value that its code is, as diagrams; NotFollowedError if it is none.

    A record has ``lanes`` values of ``bits`` bits, and a code takes ``stored`` bits. Functions of several kernels can
    be compared if their diagrams are made of the same ``symbols``; bits above the highest that is used do not count.
    """
    symbols = symbols or Symbols()
    record = tuple(bit for lane in range(lanes) for bit in symbols.of_value(lane, bits))
    functions = []
    for code in codes(listing, graph, symbols, record, lanes=lanes, stored=stored):
        diagrams = [bit.diagram for bit in code]
        while diagrams and diagrams[-1] == NO:
            diagrams.pop()
        functions.append(tuple(diagrams))
    return tuple(functions)


def codes(
    listing: Listing, graph: control.Flow, symbols: Symbols, record: Word, *, lanes: int, stored: int
) -> tuple[Word, ...]:
    """Return the code that a thread stores for each lane of its record: a function of what has the lane's number.

    NotFollowedError if one depends on anything else, or the code is not followed. If a record is not a power of two of
    bytes, the addresses of the first thread show which part of it an instruction accesses.
    """
    sizes = len(record) // 8, max(1, lanes * stored // 8)
    try:
        odd = any(size & (size - 1) for size in sizes)
        places = _Walk(listing, graph, symbols, record, sizes, ZERO).places if odd else None
        memory = _Walk(listing, graph, symbols, record, sizes, OTHER, places).memory
    except (Lacks, SassError, RecursionError) as error:
        raise NotFollowedError(str(error)) from error
    width = max(8, stored) if lanes == 1 else stored
    found = []
    for lane in range(lanes):
        bits = range(lane * width, (lane + 1) * width)
        code = tuple(memory.get(at // 8, (OTHER,) * 8)[at % 8] for at in bits)
        if any(symbols.is_unknown(bit) or bit.value not in (lane, None) for bit in code):
            raise NotFollowedError(f"code {lane} depends on more than its value")
        found.append(code)
    return tuple(found)


_ALIGNED = 128
"""Bytes at multiples of which the two arrays are taken to begin. CUDA allocates at multiples of 256."""


@dataclass
class _State:
    """Registers on one way through the code, and where that way is taken."""

    taken: Bit
    registers: dict[str, Word] = field(default_factory=dict)


class _Walk:
    """Follows the code once, each block after all that lead to it.

    ``sizes`` are the numbers of bytes that a thread reads and writes. ``index`` is each bit of the thread's index.
    """

    def __init__(
        self,
        listing: Listing,
        graph: control.Flow,
        symbols: Symbols,
        record: Word,
        sizes: tuple[int, int],
        index: Bit,
        places: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        self.memory: dict[int, Word] = {}
        """Stored bytes, by their place in the record."""
        self.places: dict[tuple[int, int], int] = {}
        """Place in the record of each access, by the instruction's address and the number among its accesses."""
        self._known_places = places
        self._at, self._accesses = 0, count()
        self._sizes = (_ALIGNED, _ALIGNED) if index == ZERO else sizes
        self._layout: Layout = LAYOUTS[listing.arch[0]]
        self._symbols = symbols
        self._record = record
        self._index = (index,) * 32
        arriving: dict[int, list[_State]] = {graph.blocks[0].start: [_State(ONE)]}
        for block in _in_order(graph):
            state = self._joined(arriving.pop(block.start, []))
            if state:
                for there, one in self._through(block, state, graph):
                    arriving.setdefault(there, []).append(one)

    # memory

    def _constant(self, place: int) -> Word:
        """A word of constant bank 0: of the pointers the lowest bits are known."""
        known = (_ALIGNED.bit_length() - 1) if place in (self._layout.parameters, self._layout.parameters + 8) else 0
        return (ZERO,) * known + (OTHER,) * (32 - known)

    def _place(self, address: Word, size: int) -> int:
        """Offset of an address in the thread's record: a power of two of bytes, if it is not known by the access."""
        access = self._at, next(self._accesses)
        place = (
            number(address[: size.bit_length() - 1]) if self._known_places is None else self._known_places.get(access)
        )
        if place is None:
            raise NotFollowedError("an address that depends on more than the thread's index")
        self.places[access] = place
        return place

    def _load(self, address: Word, bits: int) -> Word:
        at = 8 * self._place(address, self._sizes[0])
        if at + bits > len(self._record):
            raise NotFollowedError("a load outside of the record")
        return self._record[at : at + bits]

    def _stored(self, address: Word, value: Word, taken: Bit) -> None:
        at = self._place(address, self._sizes[1])
        for byte in range(len(value) // 8):
            old, new = self.memory.get(at + byte, (OTHER,) * 8), value[8 * byte : 8 * byte + 8]
            self.memory[at + byte] = tuple(self._symbols.choose(taken, a, b) for a, b in zip(new, old, strict=True))

    # ways

    def _joined(self, states: Sequence[_State]) -> _State | None:
        if not states:
            return None
        joined, *rest = states
        for state in rest:
            names = joined.registers.keys() | state.registers.keys()
            joined = _State(
                self._symbols.either(joined.taken, state.taken),
                {
                    name: self._chosen(state.taken, _of(state.registers, name), _of(joined.registers, name))
                    for name in names
                },
            )
        return joined

    def _chosen(self, test: Bit, one: Word, other: Word) -> Word:
        return tuple(self._symbols.choose(test, a, b) for a, b in zip(one, other, strict=True))

    def _through(self, block: control.Block, state: _State, graph: control.Flow) -> Iterator[tuple[int, _State]]:
        for instruction in block.instructions:
            if instruction.opcode not in control.CONTROL:
                self._execute(instruction, state)
        last = block.instructions[-1]
        after = last.address + STEP
        if last.opcode in control.CALL | control.RETURN | control.INDEXED | control.DIVERGENT:
            raise NotFollowedError(last.opcode)
        if last.opcode not in control.CONTROL - control.OPEN:
            yield block.goes_to[0], state
            return
        test = self._test(last, state)
        if last.opcode not in control.EXIT:
            there = graph.meets[last.address] if last.opcode in control.MEET else control.target(last)
            yield there, _State(self._symbols.both(state.taken, test), dict(state.registers))
        if test != ONE:
            yield after, _State(self._symbols.both(state.taken, self._symbols.invert(test)), state.registers)

    def _test(self, instruction: Decoded, state: _State) -> Bit:
        """Return the condition on which a jump is made."""
        operands = Operands(instruction, self._layout)
        conditions = [operands.value(instruction.predicate)] if instruction.predicate else []
        if instruction.opcode in control.BRANCH | control.EXIT and operands.peek_predicate():
            conditions.append(operands.truth())
        folder, test = self._folder(state), ONE
        for condition in conditions:
            test = self._symbols.both(test, folder.truth(condition))
        return test

    def _folder(self, state: _State) -> Folder:
        registers = dict(state.registers)
        return Folder(
            self._symbols,
            lambda name: _of(registers, name),
            constants=self._constant,
            load=self._load,
            index=self._index,
        )

    def _execute(self, instruction: Decoded, state: _State) -> None:
        self._at, self._accesses = instruction.address, count()
        operands = Operands(instruction, self._layout)
        folder = self._folder(state)
        holds = folder.truth(operands.value(instruction.predicate)) if instruction.predicate else ONE
        taken = self._symbols.both(state.taken, holds)
        known = TABLE.get(instruction.opcode)
        if known is None:  # one that only blocks of threads execute
            raise NotFollowedError(instruction.opcode)
        for effect in known.emit(operands):
            if isinstance(effect, Set):
                word = extended(folder.word(effect.value), 32)
                state.registers[effect.register] = self._chosen(holds, word, _of(state.registers, effect.register))
            elif isinstance(effect, Store):
                self._stored(folder.word(effect.address), extended(folder.word(effect.value), effect.bits), taken)
            else:
                raise NotFollowedError(instruction.opcode)


def _of(registers: Mapping[str, Word], name: str) -> Word:
    return registers.get(name, (OTHER,) * 32)


def loops(graph: control.Flow) -> bool:
    """Return whether some instruction may run more than once."""
    try:
        return not _in_order(graph)
    except NotFollowedError:
        return True


def _in_order(graph: control.Flow) -> list[control.Block]:
    """Return the blocks so that each comes after all that lead to it."""
    order = TopologicalSorter[int]()
    for block in graph.blocks:
        order.add(block.start)
        for there in block.goes_to:
            order.add(there, block.start)
    by_start = {block.start: block for block in graph.blocks}
    try:
        return [by_start[start] for start in order.static_order()]
    except CycleError:
        raise NotFollowedError("a loop") from None
