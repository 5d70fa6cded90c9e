"""Architectures that a project's build files set: what the readers of their languages found, as targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from fp4patch.core.arch import PTX, Arch, elements, made_by
from fp4patch.core.document import HIDDEN, Document
from fp4patch.core.wording import shortened
from fp4patch.doctor.readings import commands, files
from fp4patch.doctor.readings.names import ListName, list_name
from fp4patch.doctor.readings.reading import Command, Kind, Reading, Rewrite, Value
from fp4patch.doctor.readings.shell import ASSIGNMENT

# Example: nvidia/cuda:12.8
_CUDA_OF_IMAGE = re.compile(r"(?:nvidia/cuda:|cuda[:_-]?|cu(?=1[23]\d))(\d+\.\d+|1[23]\d)")
# Example: arch=compute_121a,code=[sm_121a,compute_121a]
_GENCODE = re.compile(r"arch=[\"']?(?P<arch>[^,\"']+)[\"']?\s*,\s*code=[\"']?(?P<code>.*?)[\"']?", re.DOTALL)
# Example: -gencode=arch=compute_121a,code=sm_121a
_GENCODE_OPTION = re.compile(r"-{1,2}(?:gencode|generate-code)(?:=(.*))?", re.DOTALL)
# Example: -arch=sm_121a
# Example: --cuda-gpu-arch=sm_121a
_ARCH_OPTION = re.compile(
    r"(?:-arch|--gpu-architecture|--gpu-name|--cuda-gpu-arch|--offload-arch)(?:=(.*))?", re.DOTALL
)
# Example: -code=sm_121a,compute_121a
_CODE_OPTION = re.compile(r"(?:-code|--gpu-code)(?:=(.*))?", re.DOTALL)
# Example: [sm_121a,compute_121a]
_TARGETS = re.compile(r"\[?(?:(?:sm|compute|lto)_\d+[af]?,?)+\]?")
# Example: -DNAME:STRING=value
_DEFINED = re.compile(r"-D([A-Za-z_]\w*)(?::\w+)?(?:=(.*))?", re.DOTALL)
_EVERY_NVCC = re.compile(r"NVCC_(?:APPEND|PREPEND)_FLAGS")
_FLAGS = re.compile(r"\w*(?:FLAGS|ARGS|OPTS|OPTIONS|GENCODE|configopts|buildopts)\w*", re.IGNORECASE)
"""Variables whose values are words for a command."""
# Example: --nvcc-flags=
_FLAGS_OPTION = re.compile(r"--?[\w-]*(?:flags|args|options|settings)(?:=(.*))?|-C", re.DOTALL)
_ASSIGNING = frozenset(
    ("make", "gmake", "docker", "podman", "buildah", "nerdctl", "spack", "just", "ninja", "bazel", "bazelisk")
)
"""Programs of which a word ``NAME=value`` sets a variable."""
_CMAKE = re.compile(r"cmake[\d.]*|ccmake|meson")


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
    kind: Kind = Kind.ASSIGNED
    command: str = ""
    """Command that it is passed to; empty if it holds for all that follow."""
    native: bool = field(default=False, metadata=HIDDEN)
    """True if they are those of the machine's own GPU."""
    conditional: tuple[Arch, ...] = field(default=(), metadata=HIDDEN)
    """Those of the targets that are set under a condition that is not known."""
    partial: bool = field(default=False, metadata=HIDDEN)
    """True if they are for one target or command of the build, and not for all of its sources."""
    condition: str = field(default="", metadata=HIDDEN)
    """What decides whether it is set at all, if that is not known."""
    literal: bool = field(default=True, metadata=HIDDEN)
    """False if a part of its text is not known, whatever it comes to."""
    meaning: str = field(default="", metadata=HIDDEN)
    """What an element without a suffix comes to, by who reads it."""

    def on(self, gpu: Arch) -> Setting:
        """Return the setting as it is on the machine of a GPU."""
        return replace(self, code=(*self.code, gpu)) if self.native else self


@dataclass(frozen=True)
class BuildFile:
    """What one build file says about targets."""

    settings: tuple[Setting, ...] = ()
    others: tuple[Setting, ...] = ()
    """Settings for the builds of other projects, which their ``command`` names."""
    flags: tuple[Setting, ...] = ()
    """Flags for every call of nvcc: ``NVCC_APPEND_FLAGS``."""
    macros: dict[str, str] = field(default_factory=dict)
    """Macros for every compilation."""
    used: frozenset[str] = frozenset()
    """Variables of the environment that it asks for."""
    commands: tuple[Command, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    """What a script replaces in other files."""
    unread: str = ""
    """Why it is not read, or what of it is not; empty if all of it is."""


def of_command(place: str, command: Sequence[str], cuda: Version | None) -> Setting:
    """Return what one command of a compiler sets, all of it together.

    ``cuda``: the release whose default counts where it sets nothing; None: it is not known.
    """
    together = Setting(place, "its command", "")
    for setting in _of_words(place, Reading("nvcc", tuple(map(Value, command)), 0, Kind.PASSED), ""):
        together = _joined(together, setting)
    if cuda and not (together.code or together.ptx or together.unknown or together.native):
        plain = Arch(7, 5) if cuda >= Version("13") else Arch(5, 2)
        return replace(together, value=f"the compiler's default, {plain}", code=(plain,), ptx=(plain,))
    value = ", ".join([*map(str, together.code), *(f"compute_{arch.number}" for arch in together.ptx)])
    return replace(together, value=value)


def read(path: str, text: str, cuda: Version, own: str = "") -> BuildFile:
    """Return what a build file sets. ``cuda``: the release for which conditions on it are evaluated.

    ``own``: the name of the directory that is asked about.
    """
    found = files.read(path, text, cuda)
    if found is None:
        return BuildFile()
    if isinstance(found, str):
        return BuildFile(unread=f"{path}: {found}")
    mine, others, flags = list[Setting](), list[Setting](), list[Setting]()
    cloned = commands.clones(found.commands)
    for at, reading in enumerate(found.readings):
        users = _users(reading, found.commands)
        projects = [commands.other_project(command, cloned, own) for command in users or ()]
        if users is not None and not users:
            continue  # for a command that prints
        if users is None and files.kind_of(path) in _IN_ORDER and _is_replaced(reading, found.readings[at + 1 :]):
            continue
        is_other = bool(projects) and all(projects)
        for setting in _of_reading(path, reading):
            user = str(users[0]) if users and (is_other or reading.kind is Kind.PASSED) else setting.command
            given = replace(setting, command=user)
            to = flags if _EVERY_NVCC.fullmatch(reading.name) else others if is_other else mine
            to.append(given)
    for command in found.commands:
        if commands.prints(command):
            continue
        is_other = bool(commands.other_project(command, cloned, own))
        of_file = any(word.text.endswith((".cu", ".cuh")) for word in command.words)
        passed = Reading(
            command.program,
            command.words[1:],
            command.line,
            Kind.PASSED,
            command.condition,
            image=command.image,
            partial=of_file,
        )
        (others if is_other else mine).extend(_of_words(f"{path}:{command.line}", passed, str(command)))
        if not is_other:
            found.macros |= _macros(command)
    unread = shortened(f"{path}:{line}: {why}" for line, why in found.unread)
    return BuildFile(
        tuple(_together(mine)),
        tuple(_together(others)),
        tuple(flags),
        found.macros,
        frozenset(found.used),
        tuple(found.commands),
        tuple(found.rewrites),
        unread,
    )


_IN_ORDER = ("dockerfile", "shell", "pkgbuild", "python")


def _is_replaced(reading: Reading, later: Sequence[Reading]) -> bool:
    """Return whether a variable that no command got is set anew."""
    return any(one.name == reading.name and not one.condition and reading.name != "words" for one in later)


def _users(reading: Reading, every: Sequence[Command]) -> list[Command] | None:
    """Return the commands that get a variable of the environment and can compile; None if no command gets it."""
    getting = [
        c
        for c in every
        if (one := c.environment.get(reading.name)) and one.line == reading.line and one.value == reading.values[0]
    ]
    if not getting:
        return None
    building = [command for command in getting if not commands.prints(command)]
    alone = all(reading.name in command.own for command in getting)
    return building if building or alone else None


def cuda_of_image(image: str) -> str:
    """Return ``12.8`` of ``nvidia/cuda:12.8.1-devel-ubuntu24.04``; empty if the name states none."""
    found = _CUDA_OF_IMAGE.search(image)
    return (found[1] if "." in found[1] else f"{found[1][:2]}.{found[1][2:]}") if found else ""


def defined(words: Sequence[str]) -> dict[str, str]:
    """Return the macros that words of a compiler's command define: ``-DNAME=1``."""
    found = dict[str, str]()
    rest = iter(words)
    for word in rest:
        text = word + next(rest, "") if word in ("-D", "-U") else word
        if matched := re.fullmatch(r"-D([A-Za-z_]\w*)(?:=([\w.]*))?", text):
            found[matched[1]] = matched[2] or "1"
        elif text.startswith("-U"):
            found.pop(text[2:], None)
    return found


def _macros(command: Command) -> dict[str, str]:
    """Return the macros that a command defines for compilations, if it is a compiler's."""
    is_compiler = re.fullmatch(r".*(?:nvcc|g\+\+|gcc|clang\+\+|clang|cl)(?:-[\d.]+)?", command.program)
    return defined([word.text for word in command.words[1:]]) if is_compiler and not command.condition else {}


def _of_reading(path: str, reading: Reading) -> Iterator[Setting]:
    """Yield what a variable, a property or an option sets."""
    place = f"{path}:{reading.line}"
    if listed := list_name(reading.name):
        if any(value.text or value.unknown for value in reading.values):
            yield _as_read(_of_values(place, reading.name, reading.values, listed), reading)
    elif reading.group == "words" or _FLAGS.fullmatch(reading.name) or _is_option(reading.values):
        words = [part for value in reading.values for part in _words(value)]
        yield from _of_words(place, replace(reading, values=tuple(words)), "")


def _is_option(values: Sequence[Value]) -> bool:
    return bool(values) and values[0].text.lstrip().startswith("-")


def _words(value: Value) -> list[Value]:
    """Return the words of a text for a command."""
    if not re.search(r"[\s'\"]", value.text):
        return [value]
    try:
        parts = shlex.split(value.text)
    except ValueError:
        parts = value.text.split()
    marked = value.unknown
    return [
        replace(value, text=part, unknown=marked if marked and (re.search(r"[$%{`<]", part) or marked in part) else "")
        for part in parts
    ]


def _of_words(  # noqa: PLR0912 - one branch for each form of an option
    place: str, reading: Reading, command: str
) -> Iterator[Setting]:
    """Yield what the words of a command set."""
    program, assigns = reading.name, reading.name in _ASSIGNING
    rest = iter(_as_gencode(reading.values))
    for word in rest:
        text = word.text

        def value_of(given: str | None, word: Value = word) -> Value:
            return next(rest, Value("")) if given is None else replace(word, text=given)

        def as_read(setting: Setting, word: Value = word) -> Setting:
            return _as_read(
                replace(setting, command=command), replace(reading, condition=reading.condition or word.condition)
            )

        if found := _GENCODE_OPTION.fullmatch(text):
            yield as_read(_gencode(place, value_of(found[1])))
        elif found := _ARCH_OPTION.fullmatch(text):
            if setting := _arch(place, value_of(found[1])):
                yield as_read(setting)
        elif text in ("-Xcompiler", "-Xptxas", "-Xlinker", "-o", "-I", "-include"):
            next(rest, None)
        elif text == "-D" or (found := _DEFINED.fullmatch(text)):
            if text == "-D":
                found = _DEFINED.fullmatch("-D" + next(rest, Value("")).text)
            if found and found[2] is not None:
                yield from map(as_read, _named(place, found[1], replace(word, text=found[2])))
        elif found := re.fullmatch(r"(--?[\w@/:-]+)(?:=(.*))?", text, re.DOTALL):
            if (listed := list_name(found[1])) and (found[2] is not None or listed.notation == "own"):
                yield as_read(_of_values(place, found[1], (value_of(found[2]),), listed))
            elif found[1] in ("-e", "--env", "--build-arg", "--repo_env", "--action_env", "--test_env") and assigns:
                given = ASSIGNMENT.fullmatch(value_of(found[2]).text)
                if given:
                    yield from map(as_read, _named(place, given[1], replace(word, text=given[2])))
            elif _FLAGS_OPTION.fullmatch(text):
                inner = value_of(found[2])
                config = re.fullmatch(r"(?:cmake\.define\.)(\w+)=(.*)", inner.text, re.DOTALL)
                if config:
                    yield from map(as_read, _named(place, config[1], replace(inner, text=config[2])))
                else:
                    inside = replace(inner, text=re.sub(r"^(?:cmake\.args|--[\w-]+)=", "", inner.text))
                    if _is_option((inside,)):
                        yield from _of_words(place, replace(reading, values=tuple(_words(inside))), command)
        elif (assigns or _CMAKE.fullmatch(program)) and (found := re.fullmatch(r"([\w-]+)=(.*)", text, re.DOTALL)):
            yield from map(as_read, _named(place, found[1], replace(word, text=found[2])))
        elif program == "spack" and (found := re.search(r"\bcuda_arch=([\w,:]+)", text)):
            yield from map(as_read, _named(place, "cuda_arch", replace(word, text=found[1])))


def _as_gencode(words: Sequence[Value]) -> Sequence[Value]:
    """Return words with ``-arch=compute_121a -code=sm_121a`` as the ``-gencode`` that nvcc makes of them."""
    found = dict[str, Value]()
    others = list[Value]()
    rest = iter(words)
    for word in rest:
        for name, option in (("arch", _ARCH_OPTION), ("code", _CODE_OPTION)):
            given = option.fullmatch(word.text)
            if given and name not in found:
                found[name] = replace(word, text=given[1]) if given[1] is not None else next(rest, Value(""))
                break
        else:
            others.append(word)
    arch, code = found.get("arch"), found.get("code")
    if not (arch and code and _TARGETS.fullmatch(arch.text) and _TARGETS.fullmatch(code.text)):
        return words
    pair = Value(f"arch={arch.text},code={code.text}", arch.unknown or code.unknown)
    return [Value("-gencode"), replace(pair, condition=arch.condition or code.condition), *others]


def _named(place: str, name: str, value: Value) -> Iterator[Setting]:
    """Yield what ``NAME=value`` sets: a list, or flags."""
    yield from (replace(one, place=place) for one in _of_reading(place, Reading(name, (value,), 0)))


def _as_read(setting: Setting, reading: Reading) -> Setting:
    kind = (
        Kind.DEFAULT
        if any(value.default for value in reading.values) and reading.kind is not Kind.PASSED
        else reading.kind
    )
    under = (*setting.code, *setting.ptx) if reading.condition else setting.conditional
    return replace(
        setting,
        kind=kind,
        condition=reading.condition,
        conditional=under,
        partial=setting.partial or reading.partial,
        cuda=cuda_of_image(reading.image),
        command=setting.command or (str(reading.command) if reading.command else ""),
    )


def is_list(name: str) -> bool:
    """Return whether a name is that of a setting that holds targets."""
    return list_name(name) is not None


def of_list(place: str, name: str, value: str) -> Setting:
    """Return the setting with the targets of a list that a variable has, or PyTorch's if there is no such variable."""
    listed = list_name(name) or list_name("TORCH_CUDA_ARCH_LIST")
    assert listed
    return _of_values(place, name, (Value(value),), listed)


def _of_values(place: str, name: str, values: Sequence[Value], listed: ListName) -> Setting:
    made = Setting(place, name, ";".join(value.text for value in values) if len(values) > 1 else values[0].text)
    for value in values:
        made = _with_elements(made, value, listed)
    literal = not any(value.unknown for value in values)
    return replace(made, unknown=made.unknown or ("" if elements(made.value) else made.value or name), literal=literal)


def _with_elements(made: Setting, value: Value, listed: ListName) -> Setting:
    code, ptx = list[Arch](), list[Arch]()
    unknown, native, meaning = value.unknown, made.native, made.meaning
    text = re.sub(r"[\"']", "", value.text)
    parts = [text] if "$<" in text or unknown else elements(text)  # an expression of CMake is one
    for part in parts:
        if part.lower() == "native":
            native = True
            continue
        suffix = next((end for end in (PTX, "-real", "-virtual") if part.endswith(end)), "")
        try:
            arch = Arch.parse(part.removesuffix(suffix))
        except ValueError:
            unknown = unknown or part
            continue
        is_ptx = part.startswith("compute_") or suffix in (PTX, "-virtual")
        code += [] if suffix == "-virtual" or (listed.notation == "xmake" and is_ptx) else [arch]
        ptx += [arch] if is_ptx or (listed.notation == "cmake" and not suffix) else []
        if listed.plain and not arch.suffix and arch.major >= 10:
            meaning = meaning or listed.plain.format(element=part, plain=arch, number=arch.number)
    if listed.notation == "own" and not unknown:
        unknown = f"{listed.read_by} decides what {text} comes to"
        code, ptx, native = [], [], False
    under = (*made.conditional, *(code + ptx if value.condition else ()))
    return replace(
        made,
        code=tuple(dict.fromkeys((*made.code, *code))),
        ptx=tuple(dict.fromkeys((*made.ptx, *ptx))),
        unknown=made.unknown or unknown,
        native=native,
        conditional=tuple(dict.fromkeys(under)),
        meaning=meaning,
    )


def _gencode(place: str, value: Value) -> Setting:
    found = _GENCODE.fullmatch(value.text.strip())
    if not found or value.unknown:
        return Setting(place, "-gencode", value.text, unknown=value.unknown or value.text or "its argument")
    made, texts, unknown = list[Arch](), list[Arch](), ""
    for part in elements(re.sub(r"[\"'\[\]\\]", " ", found["code"])):
        target = re.fullmatch(r"(sm|compute|lto)_(\d{2,3}[af]?)", part)
        one = made_by(found["arch"].strip(), part.replace("lto_", "sm_")) if target else None
        if target and one:
            (texts if target[1] == "compute" else made).append(one)
        else:
            unknown = part
    return Setting(place, "-gencode", value.text, tuple(made), tuple(texts), unknown)


def _arch(place: str, value: Value) -> Setting | None:
    """Return what ``-arch`` sets; None if its value is a processor's."""
    text = value.text.strip("\"'\\")
    if value.unknown:
        return Setting(place, "-arch", value.text, unknown=value.unknown)
    if text == "native":
        return Setting(place, "-arch", text, native=True)
    if text in ("all", "all-major"):
        return Setting(place, "-arch", text, unknown=text)
    target = re.fullmatch(r"(sm|compute)_(\d{2,3}[af]?)", text)
    if not target:
        return None
    try:
        arch = Arch.parse(target[2])
    except ValueError:  # a GPU of CUDA 8 or before
        return Setting(place, "-arch", text, unknown=text)
    # nvcc 13.0 adds PTX of the plain target to -arch=sm_121a too, and has ptxas check it.
    code, ptx = ((arch,), (arch.gpu,)) if target[1] == "sm" else ((), (arch,))
    return Setting(place, "-arch", text, code, ptx)


def _together(found: Sequence[Setting]) -> Iterator[Setting]:
    """Yield the settings of a file, with those flags joined that one variable, file or command has together."""
    groups: dict[tuple[object, ...], Setting] = {}
    for setting in found:
        joins = setting.name == "-gencode"
        key = (
            setting.name,
            setting.place if setting.command else _file(setting.place),
            setting.command,
            setting.partial and setting.place,
        )
        if not joins:
            key = (setting.name, setting.value, setting.place, setting.condition)
        groups[key] = _joined(groups[key], setting) if joins and key in groups else groups.get(key, setting)
    yield from groups.values()


def _file(place: str) -> str:
    return place.rpartition(":")[0]


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
