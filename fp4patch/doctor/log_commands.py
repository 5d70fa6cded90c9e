"""Commands of compilers in a log: nvcc and clang as ninja, make or pip print them, and the steps of nvcc's dry run.

A command is a program with a source among its words; a text that only names options is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fp4patch.core.arch import Arch, nearest
from fp4patch.core.wording import counted, listed
from fp4patch.doctor import settings

# Example: nvcc.exe"
# Example: nvcc',
_PROGRAM = re.compile(
    r"(?<![^\s\"'`/\\:\[(])(?P<name>nvcc|ptxas|fatbinary|clang(?:\+\+)?)(?:-[\d.]+)?(?:\.exe)?[\"']?(?P<list>,?)(?!\S)"
)
# Example: '-gencode'
_OF_LIST = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
# Example: src/fp4_quant.cu
_SOURCE = re.compile(r"(?:.*[/\\])?([\w.+-]+\.(?:cu|cuh|cc|cpp|cxx|c|cup|ptx|ii|gpu))")
# Example: --generate-code="arch=compute_90a,code=[sm_90a]"
_WORD = re.compile(r"(?:[^\s\"'\\]+|\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[\"'\\])+")
# Example: "a b"
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(?=[\"'])|([\"'])(?=,?$)")
_ENDS = frozenset(("&&", "||", ";", "|", ">", "2>&1", ">&", "2>", "]'", "&"))
# Example: --image3=kind=elf,sm=121a,file=x.cubin
# Example: --image=profile=sm_121a,file=x.cubin
_IMAGE = re.compile(
    r"--image\d?=(?:kind=(?P<kind>elf|ptx|nvvm),sm=(?P<sm>\d+[af]?)|profile=(?P<profile>(?:sm|compute)_\d+[af]?)),file=(?P<file>.*)"
)
# Example: --orig_src_file_name "kernel.cu" -o /tmp/tmpxft_000011b2
_OF_CICC = re.compile(r"--orig_src_file_name \"(?P<source>[^\"\n]+)\"[^\n]*?(?P<work>tmpxft_[0-9a-f]+)")
_STEPS = re.compile(r"-{1,2}(?:dryrun|dry-run|v|verbose)")
"""Options with which nvcc prints its steps."""
# Example: Compiling entry function '_Z6kernelv' for 'sm_120f'
_VERBOSE = re.compile(r"Compiling entry function '\S+' for '(sm_\d{2,3}[af]?)'")
# Example: -gencode;arch=compute_80,code=sm_80
_GENCODE = re.compile(r"--?(?:gencode|generate-code)(?![\w-])[^\n]*")


@dataclass(frozen=True)
class Compilation:
    """One compilation that a log states, or flags for compilations."""

    program: str
    source: str
    """Name of its file; empty: not told."""
    code: tuple[Arch, ...]
    ptx: tuple[Arch, ...]
    unknown: str = ""
    """What decides about its targets and is not followed: ``-arch=native comes to``."""
    shows_steps: bool = False

    @property
    def is_default(self) -> bool:
        """True if it names no target."""
        return not (self.code or self.ptx or self.unknown)

    def on(self, gpu: Arch) -> str:
        """Return what a GPU loads of it."""
        cubin, text = nearest(gpu, self.code, ()), nearest(gpu, (), self.ptx)
        if cubin:
            return str(cubin) if cubin.suffix else f"{cubin}, without FP4 instructions"
        if self.unknown:
            return f"what {self.unknown}"
        if self.is_default:
            return "the compiler's default, without FP4 instructions"
        return f"PTX of {text}" if text else "nothing of it"

    def has_fp4(self, gpu: Arch) -> bool:
        """Return whether a GPU loads machine code for a target with FP4 instructions."""
        cubin = nearest(gpu, self.code, ())
        return bool(cubin and cubin.suffix)


def read(text: str) -> list[Compilation]:
    """Return the compilations of a log; if there are none, what ptxas tells of its own, or flags that are stated."""
    lines = re.sub(r"\\\n", "  ", text).split("\n")
    log = _Log()
    for line in lines:
        if any(name in line for name in ("nvcc", "ptxas", "fatbinary", "clang")):
            log.read(line)
    found = log.found
    if any(one.program == "fatbinary" for one in found):  # it holds what the steps before it made
        found = [one for one in found if one.program != "ptxas" and not one.shows_steps]
    elif any(one.program != "ptxas" for one in found):
        found = [one for one in found if one.program != "ptxas"]
    if not found:
        told = filter(None, map(_arch, _VERBOSE.findall(text)))
        found = [Compilation("ptxas", "", (target,), ()) for target in told]
    return found or [one for line in lines if "gen" in line for one in _flags(line)]


def _arch(text: str) -> Arch | None:
    """Return a target; None for one of GPUs that no release of the last years compiles for."""
    try:
        return Arch.parse(text)
    except ValueError:
        return None


class _Log:
    """What the lines of a log have stated so far."""

    def __init__(self) -> None:
        self.found: list[Compilation] = []
        self._assembled: dict[str, Arch] = {}
        """Target of each file that ptxas writes: fatbinary calls sm_120 made of compute_120 by the name ``sm=120f``."""
        self._sources: dict[str, str] = {}
        """Source of each set of nvcc's temporary files."""

    def read(self, line: str) -> None:
        """Add the compilations of a line, of which each has its own program."""
        self._sources |= {found["work"]: found["source"] for found in _OF_CICC.finditer(line)}
        programs = [
            one for one in _PROGRAM.finditer(line) if "=" not in line[line.rfind(" ", 0, one.start()) + 1 : one.start()]
        ]
        for at, program in enumerate(programs):
            end = programs[at + 1].start() if at + 1 < len(programs) else len(line)
            rest = line[program.end() : end]
            words = [a or b for a, b in _OF_LIST.findall(rest)] if program["list"] else _words(rest)
            if program["name"] == "fatbinary":
                self._put_together(words)
            else:
                self._compiled(program["name"], words)

    def _compiled(self, name: str, words: Sequence[str]) -> None:
        sources = [found[1] for word in words if (found := _SOURCE.fullmatch(word))]
        is_sentence = not sources or not (words[0].startswith(("-", "@")) or _SOURCE.fullmatch(words[0]))
        if is_sentence or (name.startswith("clang") and not any(one.endswith((".cu", ".cuh")) for one in sources)):
            return
        made = settings.of_command("", _of_targets(words), None)
        if name == "ptxas":
            if made.code:  # else it checks PTX
                self._assembled |= {words[at + 1]: made.code[0] for at, word in enumerate(words[:-1]) if word == "-o"}
                self.found.append(Compilation(name, "", made.code[:1], ()))
            return
        if "$" in made.unknown:
            return  # the text of a script
        unknown = made.unknown or ("-arch=native" if made.native else "")
        unknown = f"{unknown} comes to" if unknown else ""
        steps = name == "nvcc" and any(map(_STEPS.fullmatch, words))
        self.found.append(Compilation(name, sources[-1], made.code, made.ptx, unknown, steps))

    def _put_together(self, words: Sequence[str]) -> None:
        code, ptx, source, unknown = list[Arch](), list[Arch](), "", ""
        for found in filter(None, map(_IMAGE.fullmatch, words)):
            is_ptx = found["kind"] == "ptx" or (found["profile"] or "").startswith("compute_")
            own = _arch(found["sm"] or found["profile"])
            if own is None:
                continue
            if found["kind"] == "nvvm":
                unknown = "the linker makes of it (LTO-IR)"
            else:
                (ptx if is_ptx else code).append(self._assembled.get(found["file"], own))
            work = re.search("tmpxft_[0-9a-f]+", found["file"])
            source = source or self._sources.get(work[0] if work else "", "")
        if code or ptx:
            self.found.append(Compilation("fatbinary", source, tuple(code), tuple(ptx), unknown))


def _of_targets(words: Sequence[str]) -> list[str]:
    """Return the words of a command that can be about targets: it may have hundreds of others."""
    before = ["", *words[:-1]]
    return [
        word
        for word, last in zip(words, before, strict=True)
        if any(part in word for part in ("arch", "code", "gpu-name"))
        or last.endswith(("arch", "code", "architecture", "gpu-name"))
    ]


def _words(text: str) -> list[str]:
    """Return the words of a command up to its end, without their quotes."""
    words = []
    for found in _WORD.finditer(text):
        word = found[0]
        if word in _ENDS or word[0] in "`#":
            break
        words.append(_QUOTED.sub(r"\1\2\3", word) if "'" in word or '"' in word or "\\" in word else word)
    return words


def _flags(line: str) -> Iterator[Compilation]:
    """Yield the ``-gencode`` flags that a line states outside of a command."""
    if found := _GENCODE.search(line):
        words = [word.strip("\"'\\,") for word in re.split(r"[;\s]+", found[0].replace("\\", ""))]
        made = settings.of_command("", words, None)
        if made.code or made.ptx:
            yield Compilation("flags", "", made.code, made.ptx)


def targets(found: Sequence[Compilation]) -> str:
    """Return the targets with their numbers: ``sm_90a (2 times) and PTX of sm_120 (1 time)``."""
    code = Counter(arch for one in found for arch in one.code)
    ptx = Counter(arch for one in found for arch in one.ptx)
    parts = [f"{arch} ({counted(number, 'time')})" for arch, number in sorted(code.items())]
    parts += [f"PTX of {arch} ({counted(number, 'time')})" for arch, number in sorted(ptx.items())]
    unknown = Counter(f"what {one.unknown}" for one in found if one.unknown)
    parts += [f"{text} ({counted(number, 'time')})" for text, number in sorted(unknown.items())]
    none = sum(one.is_default for one in found)
    return listed([*parts, f"no target ({counted(none, 'time')})" if none else ""])


def loaded(found: Sequence[Compilation], gpu: Arch) -> str:
    """Return what a GPU loads of compilations: one phrase, or one of each kind with its number."""
    kinds = Counter(one.on(gpu) for one in found)
    if len(kinds) == 1:
        return f"{gpu} loads {next(iter(kinds))}"
    parts = [f"{what} ({number:,} of {len(found):,})" for what, number in kinds.most_common()]
    return f"{gpu} loads {listed(parts)}"
