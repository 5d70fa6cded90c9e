"""Architectures that a project's build files set: CMake, Makefiles, setup.py, scripts and Dockerfiles, read as text.

Variables are replaced where the same file gives them a value, and loops over a list are followed. What depends on more
is named, and not followed. A setting under a condition that is not known is one of several alternatives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from packaging.version import Version

from fp4patch.core.arch import PTX, Arch, elements
from fp4patch.core.cuda import has, known_gpus
from fp4patch.core.document import HIDDEN, Document

BUILD_FILE = re.compile(
    r"(?P<docker>[\w.-]*Dockerfile[\w.-]*|Containerfile|.*\.dockerfile)|(?P<make>(GNU)?[Mm]akefile[\w.-]*|.*\.mk)"
    r"|(?P<cmake>CMakeLists\.txt|.*\.cmake|CMakePresets\.json)|(?P<shell>.*\.(sh|bash|env|yml|yaml|bat)|\.env|\.bazelrc)"
    r"|(?P<python>setup\.py|.*(build|compile|nvcc|arch|jit|cuda|extension)\w*\.py|pyproject\.toml"
    r"|BUILD(\.bazel)?|.*\.bzl|meson\.build)"
)
"""Files that can set architectures, by the group that tells how they are written."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}|\$\((\w+)\)|\$(\w+)")
_ASSIGNED = {
    "make": re.compile(r"^\s*(?:export\s+)?(?P<name>\w+)\s*(?P<how>\?=|:{0,2}=|\+=)\s*(?P<value>.*?)\s*$"),
    "shell": re.compile(r"(?:^|[\s;&(])(?P<name>\w+)(?P<how>=|:\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&]*)"),
    "cmake": re.compile(
        r"\b(?:set|list\s*\(\s*(?P<how>APPEND))\s*\(?\s*(?P<name>\w+)\s+(?P<value>[^)]*?)\s*(?:CACHE\b[^)]*)?\)",
        re.IGNORECASE,
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
    r"arch=\\?[\"']?compute_(?P<arch>[^,\s\"']+)\\?[\"']?\s*,\s*code=\\?[\"']?"
    r"(?P<code>\[[^\]]*\]|[\w{}$%.()]*[\w}%)](?:,(?:sm|compute)_\w+)*)"
)
_ARCH = re.compile(
    r"(?:^|[\s\"'=,])(?:-arch|--gpu-architecture)(?:\s*=\s*|\s+|[\"']\s*,\s*[\"'])\\?[\"']?(?P<arch>[\w${}()-]+)"
)
_CLANG = re.compile(r"--(?:cuda-gpu|offload)-arch=(sm_\d{2,3}[af]?)\b")
_FLAGS = re.compile(r"\bNVCC_(?:APPEND|PREPEND)_FLAGS\b")
_CMAKE_VERSION = re.compile(
    r"(?P<not>NOT\s+)?\"?\$?\{?\w*CUDA\w*_VERSION\w*\}?\"?\s+VERSION_(?P<how>GREATER_EQUAL|GREATER|LESS_EQUAL|LESS|EQUAL)\s+\"?(?P<version>[\d.]+)",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?P<not>\bnot\s+)?\b(?!\w*(?:arch|cap|sm))\w*(?:cuda|nvcc|bare_metal)\w*[^<>=]*(?P<how>>=|<=|==|<|>)\s*"
    r"(?:[\w.]+\()?[\"'(]?(?P<version>1\d\s*[.,]\s*\d+|1[1-4]\d\d0)\b",
    re.IGNORECASE,
)
_WITHOUT = re.compile(
    r"NOT\s+(?:DEFINED\s+)?\"?\$?\{?\w*(?:ARCH|SM|GENCODE)\w*\}?\"?\s*$|not in os\.environ|not os\.(?:environ|getenv)"
    r"|os\.(?:environ\.get|getenv)\([^)]*\) is None|-z\s+[\"']?\$|^ifndef\s|^ifeq\s*\(\s*\$\(\w+\)\s*,\s*\)\s*$"
)
"""A condition that holds where the user sets no architecture."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_CUDA_OF_IMAGE = re.compile(r"(?:nvidia/cuda:|cuda[:_-]?|cu(?=1[23]\d))(\d+\.\d+|1[23]\d)")
_SOURCE = re.compile(r"[\w.+-]+\.cu\b")
_OF_TARGET = re.compile(
    r"\b(?:set_target_properties|target_compile_options|set_property)\s*\(\s*(?:TARGET\s+)?(\w+)", re.IGNORECASE
)
_HAS_SOURCES = re.compile(
    r"\b(?:cuda_)?(?:add_library|add_executable|target_sources)\s*\(\s*(\w+)([^)]*)\)", re.IGNORECASE
)
_CHANGES = re.compile(r"\blist\s*\(\s*(?:REMOVE\w*|FILTER|TRANSFORM|POP\w*)\s+(\w+)", re.IGNORECASE)
_SAYS = {
    "cmake": re.compile(r"^\s*(?:message|foreach|while|string|math)\s*\(", re.IGNORECASE),
    "make": re.compile(r"\$\((?:error|warning|info)\b|^\s*@?echo\b[^>]*$"),
    "shell": re.compile(r"^\s*(?:echo|printf)\b[^>]*$"),
}
"""Lines that print or compare something, and set nothing."""
_SAYING = frozenset(("print", "warn", "warning", "info", "debug", "error", "exit"))

Branch = tuple[tuple[int, int], ...]
"""Conditionals that are not known, each with the number of its branch."""


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
    sources: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    """Names of the sources that they are for; empty: all, or not known."""
    group: str = field(default="", metadata=HIDDEN)
    """Variable, target or command that they belong to."""
    branch: Branch = field(default=(), metadata=HIDDEN)
    conditional: bool = field(default=False, metadata=HIDDEN)
    """True if some of them are in a variable under a condition that is not known."""

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


def of_command(place: str, command: str, cuda: Version) -> Setting:
    """Return what one command of a compiler sets, all of it together."""
    together = Setting(place, "its command", "")
    for setting in _of_line(place, command, "", cuda):
        together = _joined(together, setting)
    if not (together.code or together.ptx or together.unknown or together.native):
        plain = Arch(7, 5) if cuda >= Version("13") else Arch(5, 2)
        return replace(together, value=f"the compiler's default, {plain}", code=(plain,), ptx=(plain,))
    value = ", ".join([*map(str, together.code), *(f"compute_{arch.number}" for arch in together.ptx)])
    return replace(together, value=value)


def read(path: str, text: str, cuda: Version) -> tuple[list[Setting], dict[str, str]]:
    """Return what a build file sets, and the macros that it defines for compilations.

    ``cuda``: the release for which conditions on it are evaluated.
    """
    reader = _Reader(path, kind_of(path), cuda, text)
    return reader.settings, reader.macros


def cuda_of_image(image: str) -> str:
    """Return ``12.8`` of ``nvidia/cuda:12.8.1-devel-ubuntu24.04``; empty if the name states none."""
    found = _CUDA_OF_IMAGE.search(image)
    return (found[1] if "." in found[1] else f"{found[1][:2]}.{found[1][2:]}") if found else ""


def defined(text: str) -> dict[str, str]:
    """Return the macros that a command or a line defines: ``-DNAME=1``, ``add_compile_definitions(NAME)``."""
    found = {name: value or "1" for name, value in re.findall(r"(?<![\w-])-D\s?([A-Za-z_]\w*)(?:=([\w.]+))?", text)}
    for inside in re.findall(r"(?:compile_definitions|add_definitions)\s*\(([^)]*)\)", text):
        found |= {name: value or "1" for name, value in re.findall(r"\b([A-Z_][A-Z0-9_]{3,})(?:=([\w.]+))?", inside)}
    undefined = re.findall(r"(?<![\w-])-U\s?([A-Za-z_]\w*)", text)
    return {name: value for name, value in found.items() if name not in undefined}


class _Reader:
    """One pass over a build file, from its first line to its last."""

    def __init__(self, path: str, kind: str, cuda: Version, text: str) -> None:
        self.settings: list[Setting] = []
        self.macros: dict[str, str] = {}
        self._kind, self._cuda, self._python = kind, cuda, text if kind == "python" else ""
        self._variables: dict[str, tuple[str, ...]] = {}
        self._global: dict[str, tuple[str, ...]] = {}
        self._image, self._stages, self._layer = "", dict[str, str](), 0
        self._targets: dict[str, tuple[str, ...]] = {}
        self._used: set[str] = set()
        self._conditional: set[str] = set()
        """Variables to which architectures are added under a condition that is not known."""
        for number, line, branch in _lines(text, kind, cuda):
            self._line(f"{path}:{number}", line, branch)
        # What a variable holds counts where it is used.
        self.settings = [one for one in self.settings if not (one.name[0] == "-" and one.group in self._used)]

    def _line(self, place: str, line: str, branch: Branch) -> None:
        if self._kind == "docker":
            self._layer += bool(re.match(r"\s*(FROM|RUN)\b", line))
            self._stage(line)
        used = {found[1] or found[3] or found[4] for found in _VARIABLE.finditer(line)}
        own = _ASSIGNED[self._kind].match(line.lstrip()) if self._kind in _ASSIGNED else None
        self._used |= used - {own["name"] if own else ""}
        loop = (
            re.search(r"\bfor\s+(\w+)\s+in\s+([^;]+?)\s*(?:;|$)", line) if self._kind in ("shell", "docker") else None
        )
        if loop:
            self._variables[loop[1]] = tuple(self._substituted(loop[2])[0].split())
        for text in self._substituted(line):
            if not branch:
                self.macros |= defined(text)
            if found := _HAS_SOURCES.search(text):
                self._targets[found[1]] = (*self._targets.get(found[1], ()), *_SOURCE.findall(found[2]))
            if found := _CHANGES.search(text):
                self._forget(found[1], text)
            for setting in _of_line(place, text, self._python, self._cuda):
                conditional = bool(used & self._conditional)
                self._add(replace(setting, branch=branch, cuda=self._image, conditional=conditional), text)
        self._assign(line, branch)

    def _stage(self, line: str) -> None:
        """Enter a stage of a Dockerfile: it has its image's CUDA, and of the variables those that it declares again."""
        if _FROM.match(line):
            self._global = self._global if self._stages else self._variables
            self._variables = self._global
            base = _FROM.match(self._substituted(line)[0])
            assert base, line
            self._image = self._stages.get(base["image"], cuda_of_image(base["image"]))
            self._stages[base["stage"] or ""] = self._image
            self._variables = {}
        elif (again := re.match(r"\s*ARG\s+(\w+)\s*$", line)) and again[1] in self._global:
            self._variables[again[1]] = self._global[again[1]]

    def _forget(self, name: str, text: str) -> None:
        self._variables.pop(name, None)
        self.settings = [
            replace(one, code=(), ptx=(), unknown=text.strip()) if one.name == name else one for one in self.settings
        ]

    def _add(self, one: Setting, line: str) -> None:
        """Take a setting: with others that it belongs to, in the place of one that it replaces, or beside them."""
        append, name = one.name.startswith("+"), one.name.lstrip("+")
        target = _OF_TARGET.search(line) if self._kind == "cmake" else None
        own = self._targets.get(target[1], ()) if target else ()
        if not target and re.search(r"\bnvcc\b|\$[({]?\w*(?:NVCC|CUDACXX)|^\t", line):
            own = tuple(_SOURCE.findall(line))
        assigned = _ASSIGNED[self._kind].match(line.lstrip(" ")) if self._kind in ("make", "cmake") else None
        group = target[1] if target else assigned["name"] if assigned else one.place if line.startswith("\t") else ""
        if self._kind == "shell" or (self._kind == "docker" and name == "-gencode"):
            group = one.place
        elif self._kind == "docker":
            group = str(self._layer)
        one = replace(one, name=name, group=group, sources=own)
        together = append or name == "-gencode"
        same = [at for at, s in enumerate(self.settings) if (s.name, s.group) == (name, group) and not s.native]
        if not together:
            if self._kind in ("cmake", "docker") and (not target or name != "CUDA_ARCHITECTURES") and "-D" not in line:
                replaced = [at for at in same if set(one.branch) <= set(self.settings[at].branch)]
                self.settings = [s for at, s in enumerate(self.settings) if at not in replaced]
            self.settings.append(one)
            return
        inside = [at for at in same if set(one.branch) <= set(self.settings[at].branch)]
        around = [at for at in same if _agree(self.settings[at].branch, one.branch)]
        for at in inside:
            self.settings[at] = _joined(self.settings[at], one)
        if not inside and around:
            base = max(around, key=lambda at: len(self.settings[at].branch))
            self.settings.append(replace(_joined(self.settings[base], one), branch=one.branch))
            other = [
                s
                for s in self.settings
                if s.branch[:-1] == one.branch[:-1] and s.branch[-1:] not in ((), one.branch[-1:])
            ]
            if other and one.branch[-1][1] < 0:  # the last branch of a conditional: one of them holds
                del self.settings[base]
        elif not inside:
            self.settings.append(one)

    def _assign(self, line: str, branch: Branch) -> None:
        if self._kind == "docker":
            line = re.sub(r"^\s*(?:ARG|ENV)\s+(\w+)\s+(?!=)(\S.*)$", r"\1=\2", line)
            line = re.sub(r"^\s*(?:ARG|ENV)\s+", "", line)
        for found in _ASSIGNED["shell" if self._kind in ("docker", "") else self._kind].finditer(line):
            name, value, how = found["name"], found["value"].strip().strip("\"'"), found["how"] or ""
            before = self._variables.get(name, ())
            if how in ("+=", "APPEND", "append"):
                if branch and re.search(r"\d{2,3}[af]?\b", value):
                    self._conditional.add(name)
                value = " ".join([*before, value])
            if (how == "?=" and before) or name in re.findall(r"\w+", value):
                continue
            if branch and before not in ((), (value,)) and not how.startswith(("+", "A", "a")):
                self._variables[name] = ()  # which of them holds is not known
            else:
                self._variables[name] = (value,)

    def _substituted(self, line: str) -> list[str]:
        """Return the line with the values of its variables: one for each value of a loop's."""
        lines = [line]
        for _ in range(12):
            before = lines
            lines = [text for one in lines for text in self._replaced(_expanded(one))]
            if lines == before or len(lines) > 64:
                break
        return lines[:64]

    def _replaced(self, line: str) -> list[str]:
        for found in _VARIABLE.finditer(line):
            name = found[1] or found[3] or found[4]
            values = self._variables.get(name, () if found[2] is None else (found[2],))
            if values:
                return [line[: found.start()] + value + line[found.end() :] for value in values]
        return [line]


def _expanded(line: str) -> str:
    """Return a line of a Makefile with the first ``$(foreach name,words,body)`` written out."""
    found = re.search(r"\$\(foreach\s+(\w+)\s*,([^,$()]*),", line)
    if not found:
        return line
    depth, end = 1, found.end()
    while end < len(line) and depth:
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    body = line[found.end() : end - 1]
    words = [re.sub(rf"\$[({{]{found[1]}[)}}]", word, body) for word in found[2].split()]
    return line[: found.start()] + " ".join(words) + line[end:]


def _agree(one: Branch, other: Branch) -> bool:
    """Return whether two lines can both be read: no conditional has them in different branches."""
    taken = dict(one)
    return all(taken.get(number, branch) == branch for number, branch in other)


def _lines(text: str, kind: str, cuda: Version) -> Iterator[tuple[int, str, Branch]]:
    """Yield number, text and branch of each logical line, without comments, and what is for other CUDA releases."""
    if kind == "python":
        yield from _of_python(text, cuda)
        return
    if kind == "cmake":
        text = re.sub(r"#\[(=*)\[.*?\]\1\]", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
    lines = text.splitlines()
    open_: list[_Conditional] = []
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
        says = _SAYS.get(kind)
        if says and says.search(line):
            continue
        if (word := _CONDITIONAL[kind].match(line) if kind in _CONDITIONAL else None) and not line.rstrip().endswith(
            " fi"
        ):
            _enter(open_, next(filter(None, word.groups())), line, begin, cuda)
            continue
        states = [one.state for one in open_]
        if False not in states:
            yield begin + 1, line, tuple((one.begin, one.branch) for one in open_ if one.state is None)


_CONDITIONAL = {
    "cmake": re.compile(r"\s*(if|elseif|else|endif)\s*\(", re.IGNORECASE),
    "make": re.compile(r"(?!\t)\s*(else ifn?eq|else ifn?def|ifn?eq|ifn?def|else|endif)\b"),
    "shell": re.compile(r"\s*(if|elif|else|fi)\b"),
}


@dataclass
class _Conditional:
    begin: int
    state: bool | None
    """Whether its present branch is read; None: not known."""
    taken: bool | None
    branch: int = 1
    """Number of the present branch; negative: the last one."""


def _enter(open_: list[_Conditional], word: str, line: str, begin: int, cuda: Version) -> None:
    word, condition = word.lower(), line.strip()
    if condition.endswith(")") and word in ("if", "elseif"):
        condition = condition.partition("(")[2][:-1]
    if word.startswith("if"):
        state = _holds(condition, cuda)
        open_.append(_Conditional(begin, state, state))
    elif open_ and word in ("endif", "fi"):
        open_.pop()
    elif open_:
        last, inner = open_[-1], word == "else"
        state = True if inner else _holds(condition.removeprefix("else "), cuda)
        last.branch = -last.branch - 1 if inner else last.branch + 1
        last.state = False if last.taken else state if last.taken is False else None if state is not False else False
        last.taken = True if last.taken or (state and last.taken is False) else last.taken if state is False else None


def _of_python(text: str, cuda: Version) -> Iterator[tuple[int, str, Branch]]:
    """Yield the lines of a Python file (or Starlark, or TOML) without what only says something."""
    silent: set[int] = set()
    branches: dict[int, list[tuple[int, int]]] = {}
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        nodes = []
    for node in nodes:
        value = node.value if isinstance(node, ast.Expr) else None
        name = value.func if isinstance(value, ast.Call) else None
        called = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
        says = isinstance(value, ast.Constant) or called in _SAYING
        if isinstance(node, ast.Raise | ast.Assert | ast.Compare) or says:
            silent.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
        if isinstance(node, ast.If):
            state = _holds(ast.unparse(node.test), cuda)
            for number, body in ((1, node.body), (-2, node.orelse)):
                lines = range(body[0].lineno, (body[-1].end_lineno or 0) + 1) if body else range(0)
                if state is not None and state is not (number > 0):
                    silent.update(lines)
                for line in lines if state is None else ():
                    branches.setdefault(line, []).append((node.lineno, number))
    for number, code in enumerate(text.splitlines(), 1):
        if number not in silent:
            yield number, re.sub(r"(^|\s)#.*", "", code), tuple(branches.get(number, ()))


def _holds(condition: str, cuda: Version) -> bool | None:
    """Return whether a condition holds that is on the CUDA release, or that the user sets nothing; None for others."""
    if _WITHOUT.search(condition) or condition in ("1", "ON", "TRUE", "True"):
        return True
    if condition in ("0", "OFF", "FALSE", "False"):
        return False
    states: list[bool] = []
    for found in (*_CMAKE_VERSION.finditer(condition), *_VERSION.finditer(condition)):
        text = re.sub(r"\s*,\s*", ".", found["version"])
        other = Version(text if "." in text else f"{int(text) // 1000}.{int(text) % 1000 // 10}")
        how = found["how"].upper()
        state = {
            "GREATER_EQUAL": cuda >= other, "GREATER": cuda > other, "LESS_EQUAL": cuda <= other,
            "LESS": cuda < other, "EQUAL": cuda == other, ">=": cuda >= other, ">": cuda > other,
            "<=": cuda <= other, "<": cuda < other, "==": cuda == other,
        }[how]  # fmt: skip
        states.append(state != bool(found["not"]))
    either, both = (re.search(rf"\b{word}\b", condition, re.IGNORECASE) for word in ("or", "and"))
    if either:
        return True if True in states and not both else None
    if False in states:
        return False
    return True if states and not both else None


def _of_line(place: str, line: str, python: str, cuda: Version) -> Iterator[Setting]:
    if _FLAGS.search(line):
        return  # flags for every call of nvcc: see recipes.py
    for found in _TORCH.finditer(line):
        value = found["value"].strip("\"'")
        if value:
            yield _torch_list(Setting(place, found["name"], value), value)
    for found in _CMAKE.finditer(line):
        value = (found["given"] or found["value"] or "").strip().strip("\"'")
        if value and not value.startswith(("PROPERTY", "GREATER", "LESS", "MATCHES", "STREQUAL", "}", "AND", "OR")):
            yield _cmake_list(Setting(place, ("+" if found["append"] else "") + found["name"], value), value, cuda)
    for found in _GENCODE.finditer(line):
        yield from _gencode(place, found["arch"], found["code"], python)
    for found in _CLANG.finditer(line):
        yield Setting(place, "-gencode", found[1], (Arch.parse(found[1]),))
    for found in _ARCH.finditer(line):
        yield from _arch(place, found["arch"], cuda)


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


def _cmake_list(setting: Setting, value: str, cuda: Version) -> Setting:
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
            every = [gpu for gpu in known_gpus() if has(cuda, gpu)]
            code += [gpu for gpu in every if part == "all" or (part == "all-major" and not gpu.minor)]
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


def _arch(place: str, value: str, cuda: Version) -> Iterator[Setting]:
    found = re.fullmatch(r"(sm|compute)_(\d{2,3}[af]?)", value)
    if value in ("native", "all", "all-major"):
        yield replace(_cmake_list(Setting(place, "-arch", value), value, cuda), name="-arch")
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
