"""Control flow of one kernel as one thread sees it: blocks, where each leads, and where threads meet again.

A thread alone never waits. So BSSY, which names the meeting point of a group of threads, is only the place that the
BSYNC of the same barrier register goes on at; that place is found by following the code, and must be one. A BMOV.CLEAR
leaves the register without a place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fp4patch.sass.error import SassError
from fp4patch.sass.listing import Decoded, FunctionName, Integer, Listing, Register
from fp4patch.sass.text import STEP

ANY = frozenset({"BRA.U.ANY"})
"""A branch of a whole warp, if its predicate holds for one thread."""
BRANCH, EXIT = frozenset({"BRA", "BRA.U"}) | ANY, frozenset({"EXIT"})
CALL, RETURN = frozenset({"CALL.REL.NOINC", "CALL.ABS.NOINC"}), frozenset({"RET.REL.NODEC", "RET.ABS.NODEC"})
OPEN = frozenset({"BSSY", "BSSY.RECONVERGENT", "BSSY.RELIABLE"})
MEET = frozenset({"BSYNC", "BSYNC.RECONVERGENT", "BSYNC.RELIABLE"})
CLEAR = frozenset({"BMOV.32.CLEAR"})
DIVERGENT = frozenset({"BRA.DIV"})
"""A branch of a warp that is not whole to code that does the same for it (CUDA Binary Utilities has no entry). Threads
wait for one another at the usual place here, so it is never taken."""
INDEXED = frozenset({"BRX", "BRXU"})
CONTROL = BRANCH | EXIT | OPEN | MEET | CALL | RETURN | INDEXED | DIVERGENT
"""The opcodes that this module understands: CUDA Binary Utilities, "Control Instructions"."""


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other, entered at the first alone."""

    instructions: tuple[Decoded, ...]
    goes_to: tuple[int, ...]
    """Addresses of the blocks that may follow; none after an EXIT."""

    @property
    def start(self) -> int:
        """The address of the first instruction."""
        return self.instructions[0].address


@dataclass(frozen=True)
class Flow:
    """The blocks that can be reached, by address, the first one the kernel's entry."""

    blocks: tuple[Block, ...]
    meets: Mapping[int, int]
    """For the address of each BSYNC, the address at which the thread goes on."""
    listing: Listing
    returns: tuple[int, ...] = ()
    """Addresses behind the CALLs: a RET goes on at the one that its register holds."""


def flow(listing: Listing) -> Flow:
    """Return the kernel's flow; SassError if it leaves the code, or if a BSYNC closes regions that end in several
    places."""
    code = {instruction.address: instruction for instruction in listing.instructions}
    if not code:
        raise SassError(f"{listing.kernel} holds no instruction", help="disassemble the cubin again")
    for instruction in listing.instructions:
        _formed(instruction)
    meets = _meets(listing, code)
    edges = {address: _next(instruction, meets, listing) for address, instruction in code.items()}
    reached = _reached(listing, code, edges)
    leaders = {listing.instructions[0].address}
    for address in reached:
        if code[address].opcode in CONTROL - OPEN:
            leaders |= {*edges[address], address + STEP} & reached
    returns = tuple(address + STEP for address in sorted(reached) if code[address].opcode in CALL)
    return Flow(tuple(_blocks(sorted(reached), leaders, code, edges)), meets, listing, returns)


def target(instruction: Decoded) -> int:
    """Return the target of a branch, or the meeting point of a BSSY's threads: the last operand."""
    last = instruction.operands[-1]
    assert isinstance(last, Integer)
    return last.value


def indexed(instruction: Decoded, listing: Listing) -> dict[int, int]:
    """Return the targets that a branch by a register may have, by the register's value: what its table may hold.

    The hardware adds the value to the address behind the branch and the immediate (by experiment: the sum of these two
    is the function's begin). Any word of the kernel's own constants counts that leads into the code.
    """
    after = instruction.address + STEP + target(instruction)
    known = {one.address for one in listing.instructions}
    return {word: word + after for word in listing.words if word + after in known}


def _formed(instruction: Decoded) -> None:
    """Control instructions have the forms that are known, else SassError."""
    kinds = _kinds(instruction)
    forms: Mapping[frozenset[str], Sequence[tuple[object, ...]]] = {
        BRANCH: [(Integer,), ("P", Integer), ("UP", Integer)],
        CALL: [(Integer,), ("R",)],
        RETURN: [("R", FunctionName), ("R", Integer)],
        EXIT: [(), ("P",), ("UP",)],
        OPEN: [("B", Integer)],
        MEET: [("B",)],
        INDEXED: [("R", Integer), ("UR", Integer)],
        DIVERGENT: [("UR", Integer)],
    }
    known = next((form for opcodes, form in forms.items() if instruction.opcode in opcodes), [kinds])
    strange = "" if kinds in known else "this form of a control instruction"
    if instruction.opcode in OPEN and instruction.predicate:
        strange = strange or "a region that is opened on a condition"
    if instruction.opcode in CLEAR and instruction.predicate:
        strange = "a barrier that is emptied on a condition"
    if strange:
        raise SassError(
            f"{instruction.address:#06x} {instruction.text}: {strange} is not understood",
            help="please report it with the listing",
        )


def _kinds(instruction: Decoded) -> tuple[object, ...]:
    """Return the kind of each operand: the file of a register, else the type."""
    return tuple(operand.file if isinstance(operand, Register) else type(operand) for operand in instruction.operands)


def _next(  # noqa: PLR0911 - one return a kind of instruction
    instruction: Decoded, meets: Mapping[int, int], listing: Listing
) -> tuple[int, ...]:
    after = instruction.address + STEP
    opcode, maybe = instruction.opcode, instruction.predicate is not None
    if opcode in EXIT | RETURN:
        return (after,) if maybe or (opcode in EXIT and instruction.operands) else ()
    if opcode in CALL:
        if not isinstance(instruction.operands[-1], Integer):
            return ()  # a function of the system, which is not executed
        return (after, target(instruction))  # a subroutine comes back, with every barrier register as it was
    if opcode in BRANCH:
        return (after, target(instruction)) if maybe or len(instruction.operands) > 1 else (target(instruction),)
    if opcode in INDEXED:
        return (*([after] if maybe else []), *sorted(set(indexed(instruction, listing).values())))
    if opcode in MEET:
        there = meets.get(instruction.address, after)
        return (after, there) if maybe else (there,)
    return (after,)


def _meets(listing: Listing, code: Mapping[int, Decoded]) -> dict[int, int]:
    """Return the target of each BSYNC, by forward analysis of the places in barrier registers to a fixed point."""
    entry = listing.instructions[0].address
    held: dict[int, frozenset[tuple[int | None, int]]] = {entry: frozenset()}
    pending, meets = [entry], dict[int, int]()
    while pending:
        address = pending.pop()
        instruction = code.get(address)
        if instruction is None:
            continue  # _reached reports it
        state = held[address]
        if instruction.opcode in OPEN:
            barrier = _barrier(instruction)
            state = frozenset(one for one in state if one[0] != barrier) | {(barrier, target(instruction))}
        elif instruction.opcode in CLEAR:
            state = frozenset(one for one in state if one[0] != _barrier(instruction))
        elif instruction.opcode in MEET:
            places = {place for barrier, place in state if barrier == _barrier(instruction)}
            if len(places) != 1 or address in places:
                raise SassError(
                    f"{address:#06x} {instruction.text}: threads that wait here go on at "
                    f"{', '.join(f'{place:#x}' for place in sorted(places)) or 'no known place'}",
                    help="one place is expected: please report it with the listing",
                )
            (meets[address],) = places
        for following in _next(instruction, meets, listing):
            known = held.get(following)
            if known is None or not state <= known:
                held[following] = state | (known or frozenset())
                pending.append(following)
    return meets


def _barrier(instruction: Decoded) -> int | None:
    """Return the number of the barrier register among the operands; None if there is none."""
    found = (operand.index for operand in instruction.operands if isinstance(operand, Register) and operand.file == "B")
    return next(found, None)


def _reached(listing: Listing, code: Mapping[int, Decoded], edges: Mapping[int, Sequence[int]]) -> set[int]:
    reached, pending = set[int](), [listing.instructions[0].address]
    while pending:
        address = pending.pop()
        if address not in code:
            raise SassError(
                f"{listing.kernel} runs on to {address:#x}, where it has no code",
                help="disassemble the cubin again",
            )
        if address not in reached:
            reached.add(address)
            pending += edges[address]
    return reached


def _blocks(
    addresses: Sequence[int], leaders: set[int], code: Mapping[int, Decoded], edges: Mapping[int, tuple[int, ...]]
) -> list[Block]:
    blocks: list[Block] = []
    for address in addresses:
        if address in leaders:
            blocks.append(Block((), ()))
        grown = (*blocks[-1].instructions, code[address])
        blocks[-1] = replace(blocks[-1], instructions=grown, goes_to=edges[address])
    return blocks
