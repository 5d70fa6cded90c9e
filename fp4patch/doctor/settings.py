"""Architectures that a project's build files set: CMake, Makefiles, setup.py, scripts and Dockerfiles, read as text.

Variables are replaced where the same file gives them a value, and loops over a list are followed. What depends on more
is named, and not followed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from packaging.version import Version

from fp4patch.core.arch import PTX, Arch, elements, made_by
from fp4patch.core.document import HIDDEN, Document
from fp4patch.cxx.preprocessor import either, unless

BUILD_FILE = re.compile(
    r"(?P<docker>[\w.-]*Dockerfile[\w.-]*|Containerfile|.*\.dockerfile)|(?P<make>(GNU)?[Mm]akefile[\w.-]*|.*\.mk)"
    r"|(?P<cmake>CMakeLists\.txt|.*\.cmake|CMakePresets\.json)|(?P<shell>.*\.(sh|bash|env|yml|yaml|bat)|\.env|\.bazelrc)"
    r"|(?P<python>setup\.py|.*(build|compile|nvcc|arch|jit|cuda|extension)\w*\.py|pyproject\.toml"
    r"|BUILD(\.bazel)?|.*\.bzl|meson\.build)"
)
"""Files that can set architectures, by the group that tells how they are written."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}|\$\((\w+)\)|\$(\w+)")
_HOLE = re.compile(r"\{(\w+)([^{}]*)\}")
"""A variable in a text of Python, and what is done to it."""
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;]+?)\s*(?:;|$)|\$\(foreach\s+(\w+)\s*,([^,]*),")
_SHELL = re.compile(r"(?:^|[\s;&(])(?P<name>\w+)(?P<how>=|:\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s;&]*)")
_ASSIGNED = {
    "make": re.compile(r"^\s*(?:export\s+)?(?P<name>\w+)\s*(?P<how>\?=|:{0,2}=|\+=)\s*(?P<value>.*?)\s*$"),
    "shell": _SHELL,
    "docker": _SHELL,
    "cmake": re.compile(
        r"\b(?:set|list\s*\(\s*(?P<how>APPEND))\s*\(?\s*(?P<name>\w+)\s+(?P<value>[^)]*?)\s*(?:CACHE\b[^)]*)?\)",
        re.IGNORECASE,
    ),
}
_LIST = re.compile(
    r"(?<![\w{$])(?:-D)?(?P<name>\w*CUDA_ARCHITECTURES|CUDAARCHS|\w*CUDA_ARCHS|[A-Z]+_CUDA_ARCH_LIST)(?::\w+)?"
    r"(?:[\"']\]?)?(?:\s*(?:\?=|:=|[=:,])\s*(?:[fr](?=[\"']))?(?P<given>\"[^\"]*\"|'[^']*'|[^\s\"')&]*)"
    r"|\s+(?P<words>\"[^\"]*\"|'[^']*'|[^)\n\"']*))"
)
_EXPRESSION = re.compile(r"(ARCH(?:_LIST|\w*S))(?:[\"'\]]*\s*[=,:]|=[\"']\s*\+)\s*(?!None\b)([^\W\d]\w*+)(?![\"';-])")
"""A list that an expression of Python gives, and its first name."""
_GENCODE = re.compile(
    r"arch=\\?[\"']?compute_(?P<arch>[^,\s\"']+)\\?[\"']?\s*,\s*code=\\?[\"']?"
    r"(?P<code>\[[^\]]*\]|(?:[\w{}$%.]|\([^()]*\))*(?:,(?:sm|compute)_\w+)*)"
)
_ARCH = re.compile(
    r"(?:^|[\s\"'=,])(?:-arch|--gpu-architecture)(?:\s*=\s*|\s+|[\"']\s*,\s*[\"'])\\?[\"']?(?P<arch>[\w${}()-]+)"
)
_FLAGS = re.compile(r"\bNVCC_(?:APPEND|PREPEND)_FLAGS\b")
_CMAKE_COMPARES = re.compile(r"VERSION_(GREATER|LESS|EQUAL)(_EQUAL)?")
_SIGNS = {"GREATER": ">", "LESS": "<", "EQUAL": "=="}
_COMPARES = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt, ">": operator.gt}
_VERSION = re.compile(
    r"(?P<not>\bnot\s+[\"${]*)?\b(?!\w*(?:arch|cap|sm))\w*(?:cuda|nvcc|bare_metal)\w*(?:(?!\band\b|\bor\b)[^<>=])*"
    r"(?P<how>>=|<=|==|<|>)\s*(?:[\w.]+\()?[\"'(]?(?P<version>1[1-4]\d\d0|1\d(?:\s*[.,]\s*\d+)*)\b",
    re.IGNORECASE,
)
_WITHOUT = re.compile(
    r"NOT\s+(?:DEFINED\s+)?\"?\$?\{?\w*(?:ARCH|SM|GENCODE)\w*\}?\"?\s*$|not in os\.environ|not os\.(?:environ|getenv)"
    r"|os\.(?:environ\.get|getenv)\([^)]*\) is None|-z\s+[\"']?\$|^ifndef\s|^ifeq\s*\(\s*\$\(\w+\)\s*,\s*\)\s*$"
)
"""A condition that holds where the user sets no architecture."""
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_CUDA_OF_IMAGE = re.compile(r"(?:nvidia/cuda:|cuda[:_-]?|cu(?=1[23]\d))(\d+\.\d+|1[23]\d)")
_OF_TARGET = re.compile(
    r"\b(?:set_target_properties|target_compile_options|set_property)\s*\(\s*(?:TARGET\s+)?(\w+)", re.IGNORECASE
)
_CHANGES = re.compile(r"\blist\s*\(\s*(?:REMOVE\w*|FILTER|TRANSFORM|POP\w*)\s+(\w+)", re.IGNORECASE)
_SAYS = {
    "cmake": re.compile(r"^\s*(?:message|foreach|while|math|string(?!\s*\(\s*APPEND))\s*\(", re.IGNORECASE),
    "make": re.compile(r"\$\((?:error|warning|info)\b|^\s*@?echo\b[^>]*$"),
    "shell": re.compile(r"^\s*(?:echo|printf)\b[^>]*$"),
}
"""Lines that print or compare something, and set nothing."""
_WHOLE = re.compile(r"\s*(?:if|(case))\b.*?(\bel(?:se|if)\b.*)?\s(?:fi|esac)\s*$")
"""A conditional of a shell in one line, and whether it has several branches."""
_SAYING = frozenset(("print", "warn", "warning", "info", "debug", "error", "exit"))


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
    conditional: tuple[Arch, ...] = field(default=(), metadata=HIDDEN)
    """Those of the targets that are set under a condition that is not known."""
    partial: bool = field(default=False, metadata=HIDDEN)
    """True if they are for one target or command of the build, and not for all of its sources."""

    def on(self, gpu: Arch) -> Setting:
        """Return the setting as it is on the machine of a GPU."""
        return replace(self, code=(*self.code, gpu)) if self.native else self


def kind_of(name: str) -> str:
    """Return how a file of this name is written: ``cmake``, ``make``, ``shell``, ``docker``, ``python``; or nothing."""
    found = BUILD_FILE.fullmatch(name.rpartition("/")[2])
    return next((kind for kind, value in found.groupdict().items() if value), "") if found else ""


def of_command(place: str, command: str, cuda: Version) -> Setting:
    """Return what one command of a compiler sets, all of it together."""
    together = Setting(place, "its command", "")
    for setting in _of_line(place, command):
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
    if not kind_of(path):
        return [], {}
    reader = _Reader(path, kind_of(path), cuda, text)
    # What a variable holds counts where it is used.
    found = [one for (name, group, _), one in reader.found.items() if not (name[0] == "-" and group in reader.used)]
    return found, reader.macros


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
        self.found: dict[tuple[str, str, bool], Setting] = {}
        """What is set, by name, by the variable, target or command that it belongs to, and whether it is native."""
        self.macros: dict[str, str] = {}
        self.used: set[str] = set()
        self._kind = kind
        self._variables: dict[str, tuple[str, ...]] = {}
        """Values of variables: several of a loop's; none where it is not known which one holds."""
        self._global: dict[str, tuple[str, ...]] = {}
        self._image, self._stages, self._layer = "", dict[str, str](), 0
        if kind == "python":
            lines, self._variables = _of_python(text, cuda)
        else:
            lines = _lines(text, kind, cuda)
        for number, line, conditional in lines:
            self._line(f"{path}:{number}", line, conditional)

    def _line(self, place: str, line: str, conditional: bool) -> None:
        if self._kind == "docker":
            self._stage(line)
        line = _EXPRESSION.sub(r'\1="{\2}"', line) if self._kind == "python" else line
        own = self._assigned(line)
        names = (found[1] or found[3] or found[4] for found in _VARIABLE.finditer(line))
        self.used |= {name for name in names if self._variables.get(name) and name != own}
        if self._kind in ("shell", "docker", "make") and (loop := _LOOP.search(line)):
            self._variables[loop[1] or loop[3]] = tuple(self._substituted(loop[2] or loop[4])[0].split())
        for text in self._substituted(line):
            if not conditional:
                self.macros |= defined(text)
            if found := _CHANGES.search(text):
                self._forget(found[1], text)
            for setting in _of_line(place, text):
                self._add(replace(setting, cuda=self._image), text, conditional)
        self._assign(line, conditional)

    def _stage(self, line: str) -> None:
        """Enter a stage of a Dockerfile: it has its image's CUDA, and of the variables those that it declares again."""
        self._layer += bool(re.match(r"\s*(FROM|RUN)\b", line))
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
        self._variables[name] = ()
        for key in [key for key in self.found if name in key]:
            self.found[key] = replace(self.found[key], code=(), ptx=(), unknown=text.strip())

    def _assigned(self, line: str) -> str:
        """Return the variable that a line of CMake or a Makefile assigns."""
        own = _ASSIGNED[self._kind].match(line.lstrip(" ")) if self._kind in ("make", "cmake") else None
        return own["name"] if own else ""

    def _add(self, setting: Setting, line: str, conditional: bool) -> None:
        """Take a setting: with others that it belongs to, in the place of one that it replaces, or beside them."""
        joins = setting.name == "-gencode" or (self._kind == "cmake" and "APPEND" in line)
        target = _OF_TARGET.search(line) if self._kind == "cmake" else None
        command = self._kind in ("make", "shell") and re.search(r"[\w.+-]+\.cu\b", line)
        replaces = self._kind == "cmake" and not conditional and "-D" not in line
        group = target[1] if target else self._assigned(line)
        if self._kind == "docker":
            group = setting.place if joins else f"layer {self._layer}"
        elif self._kind == "shell" or line.startswith("\t") or not (joins or replaces):
            group = setting.place
        under = (*setting.code, *setting.ptx) if conditional else ()
        setting = replace(setting, partial=bool(target or command), conditional=under)
        if "CUDA_ARCHITECTURES_NATIVE" in setting.unknown:  # what CMake makes of "native", perhaps changed
            self.found = {key: one for key, one in self.found.items() if key[0] != setting.name or not one.native}
        key = setting.name, group, setting.native
        self.found[key] = _joined(self.found[key], setting) if joins and key in self.found else setting

    def _assign(self, line: str, conditional: bool) -> None:
        if self._kind == "docker":
            line = re.sub(r"^\s*(?:ARG|ENV)\s+(\w+)\s+(?!=)(\S.*)$", r"\1=\2", line)
            line = re.sub(r"^\s*(?:ARG|ENV)\s+", "", line)
        for found in _ASSIGNED[self._kind].finditer(line) if self._kind in _ASSIGNED else ():
            name, value, how = found["name"], found["value"].strip().strip("\"'"), found["how"] or ""
            before = self._variables.get(name)
            if (how == "?=" and before is not None) or name in re.findall(r"\w+", value):
                continue
            appends = how.upper() in ("+=", "APPEND")
            after = (" ".join([*(before or ()), value]),) if appends else (value,)
            lost = (appends and before == ()) or (conditional and before != after)
            self._variables[name] = () if lost else after

    def _substituted(self, line: str) -> list[str]:
        """Return the line with the values of its variables: one for each value of a loop's."""
        lines = [line]
        for _ in range(12):
            before, lines = lines, [text for one in lines for text in self._replaced(one)][:64]
            if lines == before:
                break
        return lines

    def _replaced(self, line: str) -> list[str]:
        names = _HOLE if self._kind == "python" else _VARIABLE
        for found in names.finditer(line):
            if self._kind == "python":
                values = self._variables.get(found[1], ())
                values = tuple(value.replace(".", "") for value in values) if found[2] else values
            else:
                values = self._variables.get(found[1] or found[3] or found[4], () if found[2] is None else (found[2],))
            if values:
                return [_replaced(names, found[0], value, line) for value in values]
        return [line]


def _replaced(names: re.Pattern[str], reference: str, value: str, line: str) -> str:
    """Return a line with a value for each occurrence of a reference: of a loop's variable all have the same one."""
    line = line.replace(f"={reference}", f'="{value}"') if " " in value else line  # a blank does not end it
    return names.sub(lambda found: value if found[0] == reference else found[0], line)


def _lines(text: str, kind: str, cuda: Version) -> Iterator[tuple[int, str, bool]]:
    """Yield number and text of each logical line, and whether it is under a condition that is not known.

    Comments are left out, and what is for other CUDA releases.
    """
    if kind == "cmake":
        text = re.sub(r"#\[(=*)\[.*?\]\1\]", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
    lines = text.splitlines()
    open_: list[tuple[bool | None, bool | None]] = []  # whether the present branch is read, and whether one was
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
        if kind in _SAYS and _SAYS[kind].search(line):
            continue
        word = _CONDITIONAL[kind].match(line) if kind in _CONDITIONAL else None
        whole = _WHOLE.match(line) if kind == "shell" else None
        states = [one for one, _ in open_] + ([None if any(whole.groups()) else _holds(line, cuda)] if whole else [])
        if word and not whole:
            _enter(open_, word[1].lower(), line.strip(), cuda)
        elif False not in states:
            yield begin + 1, line, None in states


_CONDITIONAL = {
    "cmake": re.compile(r"\s*(if|elseif|else|endif)\s*\(", re.IGNORECASE),
    "make": re.compile(r"(?!\t)\s*(else ifn?eq|else ifn?def|ifn?eq|ifn?def|else|endif)\b"),
    "shell": re.compile(r"\s*(if|elif|else|fi|case|esac)\b(?![-:]|.*[:{]$)"),  # no key of YAML, no other's
}


def _enter(open_: list[tuple[bool | None, bool | None]], word: str, line: str, cuda: Version) -> None:
    condition = line.partition("(")[2][:-1] if line.endswith(")") and word in ("if", "elseif") else line
    if word.startswith(("if", "case")):
        state = _holds(condition, cuda)
        open_.append((state, state))
    elif open_ and word in ("endif", "fi", "esac"):
        open_.pop()
    elif open_:
        state = True if word == "else" else _holds(condition.removeprefix("else "), cuda)
        taken = open_[-1][1]
        open_[-1] = unless(state, taken), either(taken, state)


def _of_python(text: str, cuda: Version) -> tuple[Iterator[tuple[int, str, bool]], dict[str, tuple[str, ...]]]:
    """Return the lines of a Python file (or Starlark, or TOML) that set something, and the texts behind its names."""
    silent, conditional = set[int](), set[int]()
    values: dict[str, tuple[str, ...]] = {}
    given: list[tuple[str, ast.expr]] = []
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
        elif isinstance(node, ast.If):
            state = _holds(ast.unparse(node.test), cuda)
            for body, other in ((node.body, False), (node.orelse, True)):
                lines = range(body[0].lineno, (body[-1].end_lineno or 0) + 1) if body else range(0)
                (conditional if state is None else silent if state is other else set()).update(lines)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            given.insert(0, (node.targets[0].id, node.value))
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            given.append((node.target.id, node.iter))
    for key, expression in given:
        texts = _texts(expression, values)
        values[key] = texts if values.get(key, texts) == texts else ()
    code = enumerate(text.splitlines(), 1)
    left = ((at, re.sub(r"(^|\s)#.*", "", line), at in conditional) for at, line in code if at not in silent)
    return left, values


def _texts(node: ast.expr, values: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the text or texts of an expression; none if it is no literal and no name of one."""
    if isinstance(node, ast.Name):
        return values.get(node.id, ())
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (value,) if isinstance(value, str) else ()


def _holds(condition: str, cuda: Version) -> bool | None:
    """Return whether a condition holds that is on the CUDA release, or that the user sets nothing; None for others."""
    if _WITHOUT.search(condition) or condition in ("1", "ON", "TRUE", "True"):
        return True
    if condition in ("0", "OFF", "FALSE", "False"):
        return False
    condition = _CMAKE_COMPARES.sub(lambda found: _SIGNS[found[1]] + ("=" if found[2] else ""), condition)
    states: list[bool] = []
    for found in _VERSION.finditer(condition):
        text = re.sub(r"\s*,\s*", ".", found["version"])
        if len(text) == 5 and text.isdigit():
            text = f"{int(text) // 1000}.{int(text) % 1000 // 10}"
        elif "." not in text and found["how"] not in (">=", "<"):
            continue  # a major release alone, which may be compared with one alone
        states.append(_COMPARES[found["how"]](cuda, Version(text)) != bool(found["not"]))
    any_, all_ = (re.search(rf"\b{word}\b", condition, re.IGNORECASE) for word in ("or", "and"))
    if any_:
        return True if True in states and not all_ else None
    if False in states:
        return False
    return True if states and not all_ else None


def _of_line(place: str, line: str) -> Iterator[Setting]:
    if _FLAGS.search(line):
        return  # flags for every call of nvcc: see recipes.py
    for found in _LIST.finditer(line):
        value = re.split(r"\bCACHE\b|\bPARENT_SCOPE\b", found["given"] or found["words"] or "")[0].strip().strip("\"'")
        if value and not re.match(r"[A-Z]{2,}|[}&|]|None\b", value):
            yield of_list(place, found["name"], value)
    for found in _GENCODE.finditer(line):
        yield _gencode(place, found["arch"], found["code"])
    for found in _ARCH.finditer(line):
        value = found["arch"]
        target = re.fullmatch(r"(sm|compute)_(\d{2,3}[af]?)", value)
        if value == "native":
            yield Setting(place, "-arch", value, native=True)
        elif target:
            arch = Arch.parse(target[2])
            # nvcc 13.0 adds PTX of the plain target to -arch=sm_121a and -arch=compute_121a, and has ptxas check it.
            code, ptx = ((arch,), (arch.gpu,)) if target[1] == "sm" else ((), tuple({arch: 0, arch.gpu: 0}))
            yield Setting(place, "-arch", value, code, ptx)
        elif re.search(r"[${(]|^all", value):
            yield Setting(place, "-arch", value, unknown=value)


def of_list(place: str, name: str, value: str) -> Setting:
    """Return the setting with the targets of a list, as PyTorch or CMake write it."""
    of_pytorch = name.endswith(("_LIST", "-list"))
    code, ptx = list[Arch](), list[Arch]()
    unknown, native = "" if elements(value) else value, False
    for part in elements(re.sub(r"[\"']", "", value)) if "$<" not in value else [value]:  # an expression of CMake
        if part == "native":
            native = True
            continue
        suffix = next((end for end in (PTX, "-real", "-virtual") if part.endswith(end)), "")
        try:
            arch = Arch.parse(part.removesuffix(suffix))
        except ValueError:
            unknown = unknown or part
            continue
        code += [arch] if suffix != "-virtual" else []
        ptx += [arch] if suffix in (PTX, "-virtual") or not (suffix or of_pytorch) else []
    return Setting(place, name, value, tuple(code), tuple(ptx), unknown, native=native)


def _gencode(place: str, arch: str, code: str) -> Setting:
    made, texts, unknown = list[Arch](), list[Arch](), ""
    for part in re.split(r"[,\s]+", code.strip("[]")):
        target = re.fullmatch(r"[\"']?((?:sm|compute)_\d{2,3}[af]?)[\"')]*", part)
        one = made_by(arch, target[1]) if target else None
        if target and one:
            (made if target[1].startswith("sm") else texts).append(one)
        else:
            unknown = part
    return Setting(place, "-gencode", f"arch=compute_{arch},code={code}", tuple(made), tuple(texts), unknown)


def _joined(one: Setting, other: Setting) -> Setting:
    return replace(
        one,
        value=f"{one.value} {other.value}",
        code=tuple(dict.fromkeys((*one.code, *other.code))),
        ptx=tuple(dict.fromkeys((*one.ptx, *other.ptx))),
        unknown=one.unknown or other.unknown,
        native=one.native or other.native,
        conditional=(*one.conditional, *other.conditional),
    )
