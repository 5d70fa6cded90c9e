"""Write records/instructions.json: what the ptxas of each CUDA release makes of each FP4 instruction, target by target.

    python -m tools.regenerate features

The page instructions.md of the site and `fp4patch explore` show it. The instructions are in tools/pages/instructions/,
and so are the compilers, pinned wheels of the package index. Takes about ten minutes on two cores.
"""

import json
import os
import platform
import re
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from packaging.version import Version

from fp4patch.catalog.target import Archive
from fp4patch.commands.explore_page import INSTRUCTIONS
from fp4patch.core import process, progress
from fp4patch.core.arch import Arch
from fp4patch.core.document import SCHEMA
from fp4patch.core.store import cache_dir, sha256
from fp4patch.proof import machine_code
from fp4patch.proof.toolchain import find_toolchain
from fp4patch.sass.instruction import Instruction, InstructionClass
from fp4patch.sources.index import download

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "instructions"
OLDEST = Arch(9, 0)
"""The first architecture that has a column: sm_90 has FP8 in its tensor cores, and nothing smaller."""
OPERAND_BYTES = 8  # from one operand to the next in memory: aligned, whatever its type

# Instructions that only move operands do not identify an emulation. Neither do integers and comparisons on uniform
# registers, which compute addresses.
CARRIERS = {InstructionClass.MEMORY, InstructionClass.MOVE, InstructionClass.CONTROL, InstructionClass.BRANCH}
ADDRESSES = {InstructionClass.INTEGER, InstructionClass.COMPARE}

ERROR = re.compile(r"^ptxas (?:.*, line \d+; )?(?:error|fatal)\s*: (.*)$", re.MULTILINE)
# Parts of ptxas's wording that no release from 12.8 to 13.5 has changed: 13.1 turned "Instruction … not supported on
# .target" into "Feature … not supported on .target" for the conversions.
REFUSALS = {
    "not supported on target": re.compile(r"not supported on \.target|requires \.target"),
    "PTX version too low": re.compile(
        r"requires PTX ISA \.version|PTX \.version \S+ does not support|^Unsupported \.v"
    ),
    "unknown modifier": re.compile(r"(?:[Uu]nknown|[Ii]llegal) (?:rounding )?modifier"),
    "unknown types": re.compile(r"Unexpected instruction types|Arguments mismatch"),
    "unknown instruction": re.compile(r"Not a name of any known instruction"),
    "unknown target": re.compile(r"is not defined for option 'gpu-name'"),
}

Feature = Mapping[str, Any]
"""A table of instructions/*.toml: ``instruction`` in PTX, its ``operands``, the registers that it ``reads`` and
``writes`` (``.f32 a, b``), PTX to ``setup`` before it, and ``sass``, which the opcode in hardware matches."""


def groups() -> list[Mapping[str, Any]]:
    """Return each file of features, with its title."""
    files = sorted(file for file in DATA.glob("*.toml") if file.name != "toolkits.toml")
    return [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]


def toolkits() -> list[Mapping[str, Any]]:
    """Return the pinned compilers, the oldest first."""
    text = (DATA / "toolkits.toml").read_text(encoding="utf-8")
    found: list[Mapping[str, Any]] = tomllib.loads(text)["toolkits"]
    return sorted(found, key=lambda toolkit: Version(toolkit["release"]))


def cuda_releases() -> tuple[str, ...]:
    """Return the CUDA releases with a pinned compiler: ``13.0``."""
    return tuple(".".join(toolkit["release"].split(".")[:2]) for toolkit in toolkits())


def fetched(toolkit: Mapping[str, Any]) -> Path:
    """Return the ptxas of a pinned wheel for this machine, downloaded if the cache does not have it."""
    wheel = toolkit[platform.machine()]
    pin = Archive(version=toolkit["release"], project=toolkit["project"], subtree="", **wheel)
    archive = download(pin, progress.silent)
    folder = cache_dir() / "toolkits" / sha256(archive)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as content:
        (member,) = (name for name in content.namelist() if name.endswith("/bin/ptxas"))
        (folder / "ptxas").write_bytes(content.read(member))
    (folder / "ptxas").chmod(0o755)
    return folder / "ptxas"


@dataclass(frozen=True)
class Compiler:
    """A ptxas, and a disassembler that is at least as new."""

    ptxas: Path
    nvdisasm: Path

    def targets(self) -> list[Arch]:
        """Return the architectures that its help lists, from OLDEST on."""
        listed = re.findall(r"'sm_(\d{2,3}[af]?)'", process.run([str(self.ptxas), "--help"], limit=60).out)
        return sorted(arch for arch in set(map(Arch.parse, listed)) if arch >= OLDEST)

    def newest_isa(self) -> str:
        """Return the newest PTX version that it accepts: its error for a future version names it."""
        command = [str(self.ptxas), "-arch", str(OLDEST), "-o", os.devnull, "-ias", ".version 99.9"]
        done = process.run(command, limit=60)
        found: list[str] = re.findall(r"current version is '(\d+\.\d+)'", done.err + done.out)
        return found[0]

    def outcome(self, feature: Feature, target: Arch, isa: str) -> tuple[str, str]:
        """Return ``hardware`` or ``emulated`` with the machine code, or ``rejected`` with the kind of the refusal."""
        with tempfile.TemporaryDirectory(prefix="fp4patch-feature-") as work:
            source, cubin = Path(work) / "kernel.ptx", Path(work) / "kernel.cubin"
            source.write_text(kernel(feature, target, isa), encoding="utf-8")
            done = process.run([str(self.ptxas), "-arch", str(target), "-o", str(cubin), str(source)], limit=600)
            if done.status:
                return "rejected", refusal(done.err + done.out)
            text = process.run([str(self.nvdisasm), "-c", str(cubin)], limit=600).out
            content = cubin.read_bytes()
        return judge(feature, machine_code.unit_listing(text, content).instructions)


def kernel(feature: Feature, target: Arch, isa: str) -> str:
    """Return PTX that loads the operands from one argument, runs the instruction, and stores the results by another."""
    reads = [register for declaration in feature["reads"] for register in _registers(declaration)]
    writes = _registers(feature["writes"]) if "writes" in feature else []
    declarations = [*feature["reads"], *([feature["writes"]] if writes else [])]
    lines = [
        f".version {isa}",
        f".target {target}",
        ".address_size 64",
        ".visible .entry feature(.param .u64 source, .param .u64 destination)",
        "{",
        ".reg .b64 from, to;",
        "ld.param.u64 from, [source];",
        "ld.param.u64 to, [destination];",
        *(f".reg {declaration};" for declaration in declarations),
        *(f"ld.global{kind} {name}, [from + {at * OPERAND_BYTES}];" for at, (kind, name) in enumerate(reads)),
        feature.get("setup", ""),
        f"{feature['instruction']} {feature['operands']};",
        *(f"st.global{kind} [to + {at * OPERAND_BYTES}], {name};" for at, (kind, name) in enumerate(writes)),
        "ret;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _registers(declaration: str) -> list[tuple[str, str]]:
    """Return ``.f32 a, b`` as [(".f32", "a"), (".f32", "b")]."""
    kind, _, names = declaration.strip().partition(" ")
    return [(kind, name.strip()) for name in names.split(",")]


def refusal(output: str) -> str:
    """Return the kind of ptxas's first error; ``refused`` is every other one, as 12.8's about wide loads."""
    words = ERROR.findall(output)[0]
    return next((kind for kind, pattern in REFUSALS.items() if pattern.search(words)), "refused")


def judge(feature: Feature, code: Sequence[Instruction]) -> tuple[str, str]:
    """Hardware where an opcode matches the feature's; else emulated, by whatever is neither a load nor a move."""
    own = Counter(i.opcode for i in code if re.fullmatch(feature["sass"], i.opcode))
    others = Counter(i.opcode for i in code if not _carries(i))
    counted = (opcode if count == 1 else f"{count} {opcode}" for opcode, count in (own or others).items())
    return ("hardware" if own else "emulated"), ", ".join(counted)


def _carries(instruction: Instruction) -> bool:
    return instruction.cls in CARRIERS or (instruction.cls in ADDRESSES and instruction.opcode.startswith("U"))


def survey(compiler: Compiler) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Yield instruction, target and outcome of each feature on each target that a compiler has."""
    isa = compiler.newest_isa()
    features = [feature for group in groups() for feature in group["features"]]
    cells = [*product(features, compiler.targets())]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda cell: compiler.outcome(cell[0], cell[1], isa), cells)
        for (feature, target), outcome in zip(cells, outcomes, strict=True):
            yield feature["instruction"], str(target), outcome


def main(_arguments: list[str]) -> None:
    """Try each instruction with each compiler, and write the record."""
    nvdisasm = find_toolchain().nvdisasm
    cells: dict[str, dict[str, dict[str, tuple[str, str]]]] = {}
    for release, toolkit in zip(cuda_releases(), toolkits(), strict=True):
        for instruction, target, outcome in survey(Compiler(fetched(toolkit), nvdisasm)):
            cells.setdefault(instruction, {}).setdefault(target, {})[release] = outcome
    record = {
        "schema": SCHEMA,
        "toolkits": cuda_releases(),
        "groups": [
            {
                "title": group["title"],
                "features": [
                    {
                        "instruction": feature["instruction"],
                        "title": feature["title"],
                        "note": feature.get("note", ""),
                        "cells": cells[feature["instruction"]],
                    }
                    for feature in group["features"]
                ],
            }
            for group in groups()
        ],
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    (ROOT / INSTRUCTIONS).write_text(text + "\n", encoding="utf-8")
