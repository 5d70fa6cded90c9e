"""Results of an assembler for each feature on each target, from PTX with one instruction and its machine code.

All features of a target are assembled as one file. ptxas reports every error with its line, which identifies the
refused ones. The file is assembled again without these until it is accepted, and disassembled once. If an error belongs
to no feature's instruction, each feature is assembled alone.
"""

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from pydantic import TypeAdapter

from fp4patch.catalog.feature import Cell, Feature, Outcome, Refusal, ToolkitMatrix
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import key
from fp4patch.proof import cache, machine_code
from fp4patch.proof.ptxas import Assembler, classify
from fp4patch.sass.instruction import Instruction, InstructionClass

_JUDGEMENT = 1  # counts on with every change of how code is judged: what is remembered is of one way to judge
_CELLS = TypeAdapter(tuple[Cell, ...])
_STRIDE = 8  # bytes from one operand to the next in memory: aligned, whatever its type

# Instructions that only move operands do not identify an emulation. Neither do integers and comparisons on uniform
# registers, which compute addresses.
_CARRIERS = {InstructionClass.MEMORY, InstructionClass.MOVE, InstructionClass.CONTROL, InstructionClass.BRANCH}
_ADDRESSES = {InstructionClass.INTEGER, InstructionClass.COMPARE}


def module(features: Sequence[Feature], target: Arch, isa: str) -> str:
    """Return one PTX file with a kernel ``f0``, ``f1``, … for each feature."""
    return "\n".join(_lines(features, target, isa)) + "\n"


_HEAD = (".version {isa}", ".target {target}", ".address_size 64")


def _lines(features: Sequence[Feature], target: Arch, isa: str) -> list[str]:
    head = [line.format(isa=isa, target=target) for line in _HEAD]
    return head + [line for number, feature in enumerate(features) for line in _kernel(feature, f"f{number}")]


def _kernel(feature: Feature, name: str) -> list[str]:
    """Loads the operands from the first argument, runs the instruction, stores the results by the second."""
    reads = [register for declaration in feature.reads for register in _registers(declaration)]
    writes = _registers(feature.writes) if feature.writes else []
    body = [
        ".reg .b64 from, to;",
        "ld.param.u64 from, [source];",
        "ld.param.u64 to, [destination];",
        *(f".reg {declaration};" for declaration in (*feature.reads, feature.writes) if declaration),
        *(f"ld.global{kind} {name}, [from + {at * _STRIDE}];" for at, (kind, name) in enumerate(reads)),
        *((feature.setup,) if feature.setup else ()),
        _instruction(feature),
        *(f"st.global{kind} [to + {at * _STRIDE}], {name};" for at, (kind, name) in enumerate(writes)),
        "ret;",
    ]
    return [
        "",
        f".visible .entry {name}(.param .u64 source, .param .u64 destination)",
        "{",
        *(f"    {line}" for line in body),
        "}",
    ]


def _instruction(feature: Feature) -> str:
    return f"{feature.instruction} {feature.operands};"


def _registers(declaration: str) -> list[tuple[str, str]]:
    """Return ``.f32 a, b`` as [(".f32", "a"), (".f32", "b")]."""
    kind, _, names = declaration.strip().partition(" ")
    return [(kind, name.strip()) for name in names.split(",")]


def probe(
    features: Sequence[Feature],
    targets: Sequence[Arch],
    assembler: Assembler,
    *,
    isa: str,
    store: Path,
    jobs: int,
    on_progress: OnProgress = silent,
) -> ToolkitMatrix:
    """Return every feature on every target, written in PTX version ``isa``.

    ``store`` is the directory of earlier results; ``jobs`` targets are worked on at a time.
    """
    started = time.monotonic()
    remembered = cache.Cache(store)
    done, counting = 0, Lock()

    def one(target: Arch) -> Mapping[str, Cell]:
        nonlocal done
        cells, cached = _of_target(features, target, assembler, isa, remembered, folder)
        with counting:
            done += 1
            on_progress(Step(done, len(targets), f"ptxas {assembler.release}, {target}", cached=cached))
        return cells

    with tempfile.TemporaryDirectory(prefix="fp4patch-probe-") as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        found = list(pool.map(one, targets))
    return ToolkitMatrix(
        ptxas=assembler.release,
        path=str(assembler.path),
        sha256=assembler.sha256,
        isa=isa,
        nvdisasm=assembler.nvdisasm_release,
        targets=tuple(targets),
        cells=tuple(cells[feature.instruction] for feature in features for cells in found),
        seconds=round(time.monotonic() - started, 3),
    )


def _of_target(
    features: Sequence[Feature], target: Arch, assembler: Assembler, isa: str, remembered: cache.Cache, folder: Path
) -> tuple[Mapping[str, Cell], bool]:
    """Return a target's cells, and whether they were remembered."""
    rules = json.dumps([(feature.instruction, feature.sass) for feature in features])
    text = module(features, target, isa)
    name = key(f"features {_JUDGEMENT}", assembler.sha256, assembler.nvdisasm_sha256, text, rules)
    if (stored := remembered.find(name, lambda _file: None)) is not None:
        return {cell.instruction: cell for cell in _CELLS.validate_json(stored.content)}, True
    work = folder / str(target)
    taken, refused = sort_out(features, target, assembler, isa, work)
    cells = {
        feature.instruction: Cell(feature.instruction, target, Outcome.REJECTED, refusal=classify(words), words=words)
        for feature, words in refused
    }
    cells |= {cell.instruction: cell for cell in _judge(taken, target, assembler, work)}
    rows = [asdict(cell) | {"target": str(cell.target)} for cell in cells.values()]
    remembered.store(name, [], cache.Stored(json.dumps(rows).encode(), ""))
    return cells, False


def sort_out(
    features: Sequence[Feature], target: Arch, assembler: Assembler, isa: str, work: Path
) -> tuple[list[Feature], list[tuple[Feature, str]]]:
    """Those that the assembler takes, with all of them in ``work``.cubin, and those that it refuses, with its words."""
    pending = list(features)
    refused: list[tuple[Feature, str]] = []
    while pending and (errors := assembler.assemble(module(pending, target, isa), target, work)):
        lines = _lines(pending, target, isa)
        of_line = {lines.index(f"    {_instruction(feature)}") + 1: feature for feature in pending}
        told: dict[str, str] = {}
        for error in errors:
            if error.line in of_line:
                told.setdefault(of_line[error.line].instruction, error.words)
        # The target is unknown, or the PTX version that the file begins with does not have it.
        of_all = [e.words for e in errors if classify(e.words) is Refusal.UNKNOWN_TARGET or 0 < e.line <= len(_HEAD)]
        if not told and of_all:
            return [], refused + [(feature, of_all[0]) for feature in pending]
        if not told:
            alone = [(feature, assembler.assemble(module([feature], target, isa), target, work)) for feature in pending]
            told = {feature.instruction: said[0].words for feature, said in alone if said}
            if not told:
                raise ProofError(
                    f"ptxas {assembler.release} takes {len(pending)} instructions for {target} one by one and not "
                    f"together: {errors[0].words}",
                    help="please report it",
                )
        refused += [(feature, told[feature.instruction]) for feature in pending if feature.instruction in told]
        pending = [feature for feature in pending if feature.instruction not in told]
    return pending, refused


def _judge(taken: Sequence[Feature], target: Arch, assembler: Assembler, work: Path) -> Iterator[Cell]:
    if not taken:
        return
    if assembler.nvdisasm is None:
        yield from (Cell(feature.instruction, target, Outcome.ACCEPTED) for feature in taken)
        return
    text = assembler.disassemble(work)
    machine_code.check_whole(text, work.with_suffix(".cubin").read_bytes())
    listing = machine_code.parse_unit(text, arch=target, registers=0, code_sha256="")
    kernel = ""
    code: dict[str, list[Instruction]] = {}
    for instruction in listing.instructions:
        label = listing.labels.get(instruction.address, "")
        kernel = label if re.fullmatch(r"f\d+", label) else kernel
        code.setdefault(kernel, []).append(instruction)
    for number, feature in enumerate(taken):
        yield judge(feature, target, code[f"f{number}"])


def judge(feature: Feature, target: Arch, code: Sequence[Instruction]) -> Cell:
    """Hardware where an opcode matches the feature's; else emulated, by whatever is neither a load nor a move."""
    own = Counter(i.opcode for i in code if re.fullmatch(feature.sass, i.opcode))
    if own:
        return Cell(feature.instruction, target, Outcome.HARDWARE, tuple(own.items()))
    others = Counter(i.opcode for i in code if not _carries(i))
    return Cell(feature.instruction, target, Outcome.EMULATED, tuple(others.items()))


def _carries(instruction: Instruction) -> bool:
    return instruction.cls in _CARRIERS or (instruction.cls in _ADDRESSES and instruction.opcode.startswith("U"))
