"""Architectures that a project's build files set: CMake, Makefiles, setup.py, scripts and Dockerfiles, read as text.

Variables are replaced where the same file gives them a value. What depends on more is not followed, and is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from packaging.version import Version

from fp4patch.core.arch import PTX, Arch, elements
from fp4patch.core.cuda import known_gpus
from fp4patch.core.document import HIDDEN, Document

BUILD_FILE = re.compile(
    r"(?P<docker>[\w.-]*Dockerfile[\w.-]*|Containerfile|.*\.dockerfile)|(?P<make>(GNU)?[Mm]akefile[\w.-]*|.*\.mk)"
    r"|(?P<cmake>CMakeLists\.txt|.*\.cmake|CMakePresets\.json)|(?P<shell>.*\.(sh|bash|env|yml|yaml|bat)|\.env)"
    r"|(?P<python>setup\.py|.*(build|compile|nvcc|arch|jit|cuda|extension)\w*\.py|pyproject\.toml)"
)
"""Files that can set architectures, by the group that tells how they are written."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}|\$\((\w+)\)|\$(\w+)")
_ASSIGNED = {
    "make": re.compile(r"^\s*(?:export\s+)?(?P<name>\w+)\s*(?P<how>\?=|:{0,2}=|\+=)\s*(?P<value>.*?)\s*$"),
    "shell": re.compile(r"(?:^|[\s;&(])(?P<name>\w+)(?P<how>=|:\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&]*)"),
    "cmake": re.compile(
        r"\bset\s*\(\s*(?P<name>\w+)\s+(?P<value>[^)]*?)\s*(?:CACHE\b[^)]*)?\)(?P<how>)", re.IGNORECASE
    ),
    "python": re.compile(r"^\s*(?P<name>\w+)\s*(?P<how>=)\s*(?P<value>[rbf]?['\"][^'\"]*['\"])\s*$"),
}
_LISTS = r"\w*CUDA_ARCHITECTURES|CUDAARCHS|\w*CUDA_ARCHS"
_CMAKE = re.compile(
    rf"(?P<append>\bAPPEND\s+)?(?:-D|\b)(?P<name>{_LISTS})"
    r"(?:(?:(?::\w+)?=\s*|[\"']\]?\s*[:,=]\s*)(?P<given>\"[^\"]*\"|'[^']*'|[^\s)\"']*)"
    r"|\s+(?P<value>\"[^\"]*\"|'[^']*'|[^)\n\"']*))"
)
_TORCH = re.compile(
    r"\b(?P<name>[A-Z]+_CUDA_ARCH_LIST)(?:[\"']\]?)?\s*(?:\?=|:=|=|:|,|\s)\s*"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"';&)]+)"
)
_GENCODE = re.compile(
    r"arch=\\?[\"']?compute_(?P<arch>[^,\s\"']+)\\?[\"']?\s*,\s*code=\\?[\"']?(?P<code>\[[^\]]*\]|[\w{}$%.]+(?:,(?:sm|compute)_\w+)*)"
)
_ARCH = re.compile(
    r"(?:^|[\s\"'=,])(?:-arch|--gpu-architecture)(?:\s*=\s*|\s+|[\"']\s*,\s*[\"'])\\?[\"']?(?P<arch>[\w${}()-]+)"
)
_FLAGS = re.compile(r"\bNVCC_(?:APPEND|PREPEND)_FLAGS\b")
_VERSION = re.compile(
    r"(?P<not>NOT\s+)?\"?\$?\{?\w*CUDA\w*_VERSION\w*\}?\"?\s+VERSION_(?P<how>GREATER_EQUAL|GREATER|LESS_EQUAL|LESS|EQUAL)\s+\"?(?P<version>[\d.]+)",
    re.IGNORECASE,
)
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(?P<image>\S+)", re.IGNORECASE)
_CUDA_OF_IMAGE = re.compile(r"(?:nvidia/cuda:|cuda[:_-]?|cu(?=1[23]\d))(\d+\.\d+|1[23]\d)")


@dataclass(frozen=True)
class Setting(Document):
    """Architectures that one place of a build file sets, or that several lines of it set together."""

    place: str
    """``CMakeLists.txt:12``."""
    name: str
    """What sets them: ``CMAKE_CUDA_ARCHITECTURES``, ``-gencode``."""
    value: str
    code: tuple[Arch, ...] = ()
    """Targets of machine code."""
    ptx: tuple[Arch, ...] = ()
    """Targets of PTX."""
    unknown: str = ""
    """Part of the value that is not followed; empty if all of it is."""
    cuda: str = ""
    """CUDA release of the base image, if the file is a Dockerfile that states one."""
    native: bool = field(default=False, metadata=HIDDEN)
    """True if they are those of the machine's own GPU."""

    def on(self, gpu: Arch) -> Setting:
        """Return the setting as it is on the machine of a GPU."""
        return replace(self, code=(*self.code, gpu)) if self.native else self


def kind_of(name: str) -> str:
    """Return how a file of this name is written: ``cmake``, ``make``, ``shell``, ``docker``, ``python``; or nothing."""
    found = BUILD_FILE.fullmatch(PurePosixPath(name).name)
    return next((kind for kind, value in found.groupdict().items() if value), "") if found else ""


def of_option(asked: str) -> Setting:
    """Return the setting of ``--arch-list``."""
    return _torch_list(Setting("", "--arch-list", asked), asked)


def read(path: str, text: str, cuda: Version) -> list[Setting]:
    """Return what a build file sets. ``cuda``: the release for which conditions of a CMakeLists.txt are evaluated."""
    kind = kind_of(path)
    found: list[Setting] = []
    variables: dict[str, str] = {}
    image = ""
    for number, line in _lines(text, kind, cuda):
        place = f"{path}:{number}"
        value = _substituted(line, variables)
        if kind == "docker" and (base := _FROM.match(value)):
            image = cuda_of_image(base["image"])
        for stated in _of_line(place, value, text if kind == "python" else ""):
            append = stated.name.startswith("+")
            one = replace(stated, name=stated.name.lstrip("+"), cuda=image)
            together = append or (one.name == "-gencode" and kind not in ("docker", "shell"))
            joins = [at for at, other in enumerate(found) if together and other.name == one.name and not other.native]
            if joins:
                found[joins[-1]] = _joined(found[joins[-1]], one)
            else:
                found.append(one)
        _assign(line, kind, variables)
    return found


def cuda_of_image(image: str) -> str:
    """Return ``12.8`` of ``nvidia/cuda:12.8.1-devel-ubuntu24.04``; empty if the name states none."""
    found = _CUDA_OF_IMAGE.search(image)
    return (found[1] if "." in found[1] else f"{found[1][:2]}.{found[1][2:]}") if found else ""


def defined(text: str) -> dict[str, str]:
    """Return the macros that a build file defines for compilations: ``-DNAME=1``, ``add_compile_definitions(NAME)``."""
    found = {name: value or "1" for name, value in re.findall(r"(?<![\w-])-D\s?([A-Za-z_]\w*)(?:=([\w.]+))?", text)}
    for inside in re.findall(r"(?:compile_definitions|add_definitions)\s*\(([^)]*)\)", text):
        found |= {name: value or "1" for name, value in re.findall(r"\b([A-Z_][A-Z0-9_]{3,})(?:=([\w.]+))?", inside)}
    return found


def _lines(text: str, kind: str, cuda: Version) -> Iterator[tuple[int, str]]:
    """Yield number and text of each logical line, without what a CMakeLists.txt has for other CUDA releases."""
    lines = text.splitlines()
    open_: list[bool | None] = []
    number = 0
    while number < len(lines):
        begin, line = number, lines[number]
        while number + 1 < len(lines) and (
            line.endswith("\\") or (kind == "cmake" and line.count("(") > line.count(")") and number - begin < 40)
        ):
            number += 1
            line = line.removesuffix("\\") + " " + re.sub(r"(^|\s)#.*", "", lines[number])
        number += 1
        line = re.sub(r"(^|\s)#.*", "", line) if kind != "docker" or line.lstrip().startswith("#") else line
        if kind == "cmake":
            word = re.match(r"\s*(if|elseif|else|endif)\s*\((.*)\)\s*$", line, re.IGNORECASE)
            if word:
                _enter(open_, word[1].lower(), word[2], cuda)
                continue
            if False in open_:
                continue
        yield begin + 1, line


def _enter(open_: list[bool | None], word: str, condition: str, cuda: Version) -> None:
    if word == "if":
        open_.append(_holds(condition, cuda))
    elif open_ and word == "endif":
        open_.pop()
    elif open_:
        before = open_[-1]
        state = _holds(condition, cuda) if word == "elseif" else True
        open_[-1] = False if before else state if before is False else None


def _holds(condition: str, cuda: Version) -> bool | None:
    """Return whether a condition on the CUDA release holds; None for any other."""
    states: list[bool] = []
    for one in _VERSION.finditer(condition):
        other = Version(one["version"])
        how = one["how"].upper()
        state = {
            "GREATER_EQUAL": cuda >= other, "GREATER": cuda > other, "LESS_EQUAL": cuda <= other,
            "LESS": cuda < other, "EQUAL": cuda == other,
        }[how]  # fmt: skip
        states.append(state != bool(one["not"]))
    if " OR " in condition:
        return None
    if False in states:
        return False
    return True if states and " AND " not in condition else None


def _assign(line: str, kind: str, variables: dict[str, str]) -> None:
    if kind == "docker":
        line = re.sub(r"^\s*(?:ARG|ENV)\s+(\w+)\s+(?!=)(\S.*)$", r"\1=\2", line)
        line = re.sub(r"^\s*(?:ARG|ENV)\s+", "", line)
    for found in _ASSIGNED["shell" if kind in ("docker", "") else kind].finditer(line):
        name, value = found["name"], found["value"].strip().strip("\"'")
        if found["how"] == "+=":
            value = f"{variables.get(name, '')} {value}"
        if not (found["how"] == "?=" and name in variables) and name not in re.findall(r"\w+", value):
            variables[name] = value


def _substituted(line: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3] or found[4]
        return variables.get(name, found[2] if found[2] is not None else found[0])

    for _ in range(8):
        line, before = _VARIABLE.sub(value, line), line
        if line == before:
            break
    return line


def _of_line(place: str, line: str, python: str) -> Iterator[Setting]:
    if _FLAGS.search(line):
        return  # flags for every call of nvcc: see recipes.py
    for found in _TORCH.finditer(line):
        value = found["value"].strip("\"'")
        yield _torch_list(Setting(place, found["name"], value), value)
    for found in _CMAKE.finditer(line):
        value = (found["given"] or found["value"] or "").strip().strip("\"'")
        if value and not value.startswith(("PROPERTY", "GREATER", "LESS", "MATCHES", "STREQUAL", "}", "AND", "OR")):
            yield _cmake_list(Setting(place, ("+" if found["append"] else "") + found["name"], value), value)
    for found in _GENCODE.finditer(line):
        yield from _gencode(place, found["arch"], found["code"], python)
    for found in _ARCH.finditer(line):
        yield from _arch(place, found["arch"])


def _torch_list(setting: Setting, value: str) -> Setting:
    code: list[Arch] = []
    ptx: list[Arch] = []
    unknown = ""
    for part in elements(value):
        try:
            arch = Arch.parse(part.removesuffix(PTX))
        except ValueError:
            unknown = unknown or part
            continue
        code.append(arch)
        ptx += [arch] if part.endswith(PTX) else []
    return replace(setting, code=tuple(code), ptx=tuple(ptx), unknown=unknown)


def _cmake_list(setting: Setting, value: str) -> Setting:
    code: list[Arch] = []
    ptx: list[Arch] = []
    unknown, native = "", False
    words = [word.strip("\"'") for word in re.split(r"[;,\s]+", value)]
    for part in filter(None, words):
        found = re.fullmatch(r"(\d{2,3}[af]?)(-real|-virtual)?", part)
        if part in ("CACHE", "STRING", "PARENT_SCOPE", "FORCE"):
            break
        if part in ("native", "all", "all-major", "OFF"):
            native = native or part == "native"
            code += [gpu for gpu in known_gpus() if part == "all" or (part == "all-major" and not gpu.minor)]
        elif found:
            arch = Arch.parse(found[1])
            code += [arch] if found[2] != "-virtual" else []
            ptx += [arch] if found[2] != "-real" else []
        else:
            unknown = unknown or part
    return replace(setting, code=tuple(code), ptx=tuple(ptx), unknown=unknown, native=native)


def _gencode(place: str, arch: str, code: str, python: str) -> Iterator[Setting]:
    value = f"arch=compute_{arch},code={code}"
    if (hole := re.search(r"\{(\w+)[^}]*\}", arch)) and (values := _values_of(hole[1], python)):
        for one in values:
            text = re.sub(r"\{\w+[^}]*\}", one.replace(".", ""), code)
            yield from _gencode(place, one.replace(".", ""), text, "")
        return
    made: list[Arch] = []
    texts: list[Arch] = []
    unknown = ""
    for part in re.split(r"[,\s]+", code.strip("[]")):
        target = re.fullmatch(r"(sm|compute|lto)_(\d{2,3}[af]?)", part.strip("\"'"))
        if target is None:
            unknown = part
        elif target[1] != "lto":
            (made if target[1] == "sm" else texts).append(Arch.parse(target[2]))
    yield Setting(place, "-gencode", value, tuple(made), tuple(texts), unknown)


def _values_of(name: str, python: str) -> list[str]:
    """Return the values of a loop's variable where the loop is over a list of texts that the file has."""
    looped = re.search(rf"\bfor\s+{name}\s+in\s+(\[[^\]]*\]|\([^)]*\)|\w+)", python)
    text = looped[1] if looped else ""
    if text.isidentifier():
        assigned = re.search(rf"^\s*{text}\s*(?::[^=]+)?=\s*(\[[^\]]*\]|\([^)]*\))", python, re.MULTILINE)
        text = assigned[1] if assigned else ""
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return [str(value) for value in values] if isinstance(values, list | tuple) else []


def _arch(place: str, value: str) -> Iterator[Setting]:
    found = re.fullmatch(r"(sm|compute)_(\d{2,3}[af]?)", value)
    if value in ("native", "all", "all-major"):
        yield replace(_cmake_list(Setting(place, "-arch", value), value), name="-arch")
    elif found:
        arch = Arch.parse(found[2])
        # nvcc 13.0 adds PTX of the plain target to -arch=sm_121a too, and has ptxas check it.
        code, ptx = ((arch,), (arch.gpu,)) if found[1] == "sm" else ((), (arch,))
        yield Setting(place, "-arch", value, code, ptx)
    elif re.search(r"[${(]", value):
        yield Setting(place, "-arch", value, unknown=value)


def _joined(one: Setting, other: Setting) -> Setting:
    return replace(
        one,
        value=f"{one.value} {other.value}",
        code=tuple(dict.fromkeys((*one.code, *other.code))),
        ptx=tuple(dict.fromkeys((*one.ptx, *other.ptx))),
        unknown=one.unknown or other.unknown,
        native=one.native or other.native,
    )
