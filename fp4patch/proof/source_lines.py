"""Source lines that a compiler read for a target, and those of which it made code.

nvcc writes both: the preprocessed text has line markers, and the PTX, with ``-lineinfo``, a ``.loc`` line between the
instructions, also for each call that was inlined. ptxas, with ``-suppress-debug-info``, leaves that out of the cubin,
whose code is the same. The host's compiler writes ``.loc`` lines with ``-g`` into its assembly.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

Files = Mapping[str, Sequence[int]]
"""Lines by the path of their file, ascending; paths are relative to a tree."""

WITH_LINES = ("-lineinfo", "-Xptxas", "-suppress-debug-info")
"""Flags of nvcc for PTX with lines, and a cubin without."""
HOST_WITH_LINES = ("-Xcompiler", "-g,-save-temps=obj")
"""Flags of nvcc for host code with lines, and its assembly beside the object file. With less than ``-g`` the compiler
names no line of a function that it inlined, or of a bit cast."""


@dataclass(frozen=True)
class SourceLines:
    """Lines of a translation unit that belong to certain files of a tree."""

    read: Files = field(default_factory=dict)
    """Lines that the preprocessor left, comments and directives excepted."""
    code: Mapping[str, Files] = field(default_factory=dict)
    """Lines of which there is code, by the name of the kernel; those of the functions that it calls included."""

    def of(self, kernels: str) -> SourceLines:
        """Return the same with the code of the kernels alone whose names match a glob."""
        return SourceLines(self.read, {name: files for name, files in self.code.items() if fnmatchcase(name, kernels)})

    def compiles(self, file: str, spans: Sequence[range]) -> bool:
        """Return whether a kernel has code of a line of these spans of a file."""
        return any(_in(spans, files.get(file, ())) for files in self.code.values())

    def reads(self, file: str, spans: Sequence[range]) -> bool:
        """Return whether the preprocessor left a line of these spans of a file."""
        return _in(spans, self.read.get(file, ()))


def _in(spans: Sequence[range], lines: Sequence[int]) -> bool:
    return any((at := bisect_left(lines, span.start)) < len(lines) and lines[at] < span.stop for span in spans)


_MARKER = re.compile(r'^# (\d+) "([^"]*)".*\n', re.MULTILINE)
_FILE = re.compile(r'^\s*\.file\s+(\d+) "([^"]*)"', re.MULTILINE)
# Example: \t.loc\t2 17
_AT = re.compile(r"(?:^\s*\.loc\s+|\binlined_at )(\d+) (\d+)\b", re.MULTILINE)
# Example: .visible .entry probe(\n\t.param .u64 probe_param_0\n)\n{
_HEAD = re.compile(r"^(?:\.\w+\s+)*?\.(entry|func)\b\s*(?:\([^)]*\)\s*)?([\w$]+)[^{;]*^\{", re.MULTILINE)
_COMMENT = re.compile(r"//.*")
_NAME = re.compile(r"[\w$]+")


def source_lines(preprocessed: Path, assembly: Path, folder: Path, files: Collection[str]) -> SourceLines:
    """Return the lines of these files below a directory in preprocessed text, and in the PTX or the host's assembly
    that was made of it.

    Where there is no assembly there are none: of what the compiler refused.
    """
    if not (files and assembly.is_file()):
        return SourceLines()
    wanted = {str(folder / file): file for file in files}
    read: dict[str, set[int]] = {}
    for path, first, text in _parts(_text(preprocessed)):
        if path in wanted:
            # To the compiler a form feed is no end of a line.
            lines = (number for number, line in enumerate(text.split("\n"), first) if line.strip())
            read.setdefault(wanted[path], set()).update(lines)
    made = _text(assembly)
    names = {number: wanted.get(os.path.normpath(path), "") for number, path in _FILE.findall(made)}
    bodies = _kernels(made) if assembly.suffix == ".ptx" else {"host": made}
    return SourceLines(_sorted(read), {kernel: _lines(body, names) for kernel, body in bodies.items()})


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="surrogateescape")


def _parts(preprocessed: str) -> Iterator[tuple[str, int, str]]:
    """Yield file, first line and text of each stretch between two line markers."""
    markers = list(_MARKER.finditer(preprocessed))
    ends = [*(marker.start() for marker in markers[1:]), len(preprocessed)]
    for marker, end in zip(markers, ends, strict=False):
        yield os.path.normpath(marker[2]), int(marker[1]), preprocessed[marker.end() : end]


def _kernels(ptx: str) -> dict[str, str]:
    """Return the text of each kernel, with that of the functions that it calls."""
    heads = list(_HEAD.finditer(ptx))
    ends = [*(head.start() for head in heads[1:]), len(ptx)]
    bodies = {head[2]: ptx[head.end() : end] for head, end in zip(heads, ends, strict=False)}
    # A comment before a function has its name.
    called = {name: bodies.keys() & set(_NAME.findall(_COMMENT.sub("", body))) for name, body in bodies.items()}
    kernels = {}
    for kernel in (head[2] for head in heads if head[1] == "entry"):
        inside = {kernel}
        while more := set[str]().union(*(called[function] for function in inside)) - inside:
            inside |= more
        kernels[kernel] = "".join(bodies[function] for function in inside)
    return kernels


def _lines(assembly: str, names: Mapping[str, str]) -> Files:
    lines: dict[str, set[int]] = {}
    for number, line in _AT.findall(assembly):
        if name := names.get(number):
            lines.setdefault(name, set()).add(int(line))
    return _sorted(lines)


def _sorted(files: Mapping[str, Collection[int]]) -> Files:
    return {file: sorted(lines) for file, lines in files.items()}
