"""Find what a text depends on since an edit beside its target and itself: macros, CMake's variables, the machine."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Literal

from fp4patch.core.arch import Arch
from fp4patch.core.cuda import known_gpus
from fp4patch.cxx.condition import holds
from fp4patch.cxx.tokens import Directive, Source, lex
from fp4patch.edits.cmake import Form, Script, parse

_OF_TARGETS = re.compile(r"__CUDACC__|__CUDA_ARCH(?!_LIST__)(_\w+)?__|__CUDA_ARCH_FEAT_\w+|FP4PATCH_\w+")
"""Macros that differ between the targets of a verification, and those that its probes define. The list of a build's
targets is not among them: a probe is compiled for one."""
_OF_COMPILERS = re.compile(
    r"__[A-Z][A-Z0-9_]*__|__(?:cplusplus|clang__|linux__)|NDEBUG|CUDA(?:RT)?_VERSION|wchar_t|char|W?CHAR_M(?:AX|IN)"
)
"""Macros that are known outside of conditions too, by their names, and the types whose sign is the host's."""

Texts = Mapping[str, str]
_Line = tuple[int, str]


def macros_since(before: Texts, after: Texts) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and name of each macro that the later texts read and the earlier ones do not; LexError as of
    ``lex``.

    A macro that one of the texts defines does not count, nor one that moved from another condition.
    """
    every = (directive for text in after.values() for directive in lex(text).directives)
    own = {directive.tokens[0].text for directive in every if directive.name == "define" and directive.tokens}
    gone = {(path, word) for path, _, was in new_lines(after, before, _conditions) for word in was.split()}
    for path, line, condition in new_lines(before, after, _conditions):
        for word in dict.fromkeys(condition.split()[1:]):
            known = word in own or (path, word) in gone or word == "defined" or _OF_TARGETS.fullmatch(word)
            if word.isidentifier() and not known:
                yield path, line, word
    yield from new_lines(before, after, _of_compilers)


def new_lines(before: Texts, after: Texts, read: Callable[[Source], Iterable[_Line]]) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and text of what ``read`` finds more often in the later texts; LexError as of ``lex``."""
    for path, text in after.items():
        old, new = (read(lex(side)) for side in (before.get(path, ""), text))
        yield from ((path, line, name) for line, name in _more_often(old, new))


def pragmas(source: Source) -> Iterator[_Line]:
    """Yield line and text of each pragma that what follows the file may feel."""
    for directive in source.directives:
        text = _text(directive)
        if text.startswith("pragma") and not text.startswith(("pragma once", "pragma unroll")):
            yield directive.line, f"#{text}"
    for at, word in enumerate(source.words):
        if word in ("_Pragma", "__pragma"):
            yield source.line(source.starts[at]), word


def _more_often(before: Iterable[_Line], after: Iterable[_Line]) -> Iterator[_Line]:
    """Yield the names that occur more often than before, each with the last of its lines."""
    earlier, lines = Counter(name for _, name in before), list(after)
    for name, count in Counter(name for _, name in lines).items():
        if count > earlier[name]:
            yield max(line for line, other in lines if other == name), name


def definitions(source: Source) -> Iterator[_Line]:
    """Yield line and name of each macro that is defined or undefined."""
    for directive in source.directives:
        if directive.name in ("define", "undef") and directive.tokens:
            yield directive.line, directive.tokens[0].text


def targets_unseen(before: Texts, after: Texts, seen: Collection[Arch]) -> Iterator[tuple[str, int, str, Arch]]:
    """Yield file, line and conditions of each later ``#if`` to ``#endif`` that decides otherwise for some target than
    for all of ``seen``, and the target: a Blackwell GPU's, or one from the oldest of ``seen`` on.

    If ``seen`` have the FP4 instructions in part, a target is compared with those that are like it in this. What is not
    the target's counts as unknown. What was in its place may have decided the same. LexError as of ``lex``.
    """
    oldest = min((_BLACKWELL, 0), *((arch.major, arch.minor) for arch in seen))
    gpus = [gpu for gpu in known_gpus() if (gpu.major, gpu.minor) >= oldest]
    every = [Arch(g.major, g.minor, suffix) for g in gpus for suffix in (_SUFFIXES if g.major >= _HOPPER else ("",))]
    has_fp4 = {arch: arch.major >= _BLACKWELL and arch.suffix != "" for arch in (*every, *seen)}
    if len({has_fp4[arch] for arch in seen}) == 1:
        has_fp4 = dict.fromkeys(has_fp4, True)
    gone = list(new_lines(after, before, _chains))
    for path, line, chain in new_lines(before, after, _chains):
        known = {(has_fp4[arch], _choice(chain, arch)) for arch in seen}
        for arch in (arch for arch in every if (has_fp4[arch], _choice(chain, arch)) not in known):
            if all(_choice(chain, arch) != _choice(was, arch) for file, _, was in gone if file == path):
                yield path, line, chain.replace("\n", " … "), arch
                break


_HOPPER, _BLACKWELL = 9, 10
_SUFFIXES: tuple[Literal["", "a", "f"], ...] = ("", "a", "f")


def _chains(source: Source) -> Iterator[_Line]:
    """Yield line and conditions of each ``#if`` to ``#endif``, one below the other."""
    for conditional in source.conditionals:
        conditions = (_text(branch.opening) for branch in conditional.branches)
        yield conditional.branches[0].opening.line, "\n".join(conditions)


def _choice(chain: str, arch: Arch) -> tuple[bool | None, ...]:
    """Return the value of each condition for a target; None if it depends on something else."""

    def value(name: str) -> int | None:
        return int(arch.macros.get(name) or 0) if _OF_DEVICES.fullmatch(name) else None

    def defined(name: str) -> int | None:
        return int(name in arch.macros) if _OF_DEVICES.fullmatch(name) else None

    conditions = map(str.split, chain.splitlines())
    return tuple(holds(name, words, defined, value) for name, *words in conditions)


_OF_DEVICES = re.compile(r"__CUDA_ARCH(_\w+)?__|__CUDA_ARCH_FEAT_\w+")


def _text(directive: Directive) -> str:
    return " ".join((directive.name, *(token.text for token in directive.tokens)))


def _conditions(source: Source) -> Iterator[_Line]:
    yield from ((one.line, _text(one)) for one in source.directives if one.name.startswith(("if", "el")))


def _of_compilers(source: Source) -> Iterator[_Line]:
    for at, (before, word) in enumerate(pairwise(("", *source.words))):
        if _OF_COMPILERS.fullmatch(word) and source.directive_of[at] < 0 and before not in ("signed", "unsigned"):
            yield source.line(source.starts[at]), word


_OF_MACHINES = re.compile(
    r"\b(?:environ(?:\.get\(|\[)|getenv\()[\"'](\w+)"
    r"|\b(?:(?<!\.)platform|environ|getenv|uname|machine|cpu_count|version_info|exists|__debug__)\b"
)


def asked_since(before: str, after: str) -> Iterator[_Line]:
    """Yield line and word of each question for the machine that a later Python text has more often; for a variable of
    the environment its name."""
    return _more_often(_asked(before), _asked(after))


def _asked(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), 1):
        yield from ((number, found[1] or found[0]) for found in _OF_MACHINES.finditer(line))


_WORD = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"(?:(ENV|CACHE)|\$)\{(\w+)\}")
_CONDITIONS = frozenset(("if", "elseif", "while"))
_OPERATORS = re.compile(
    r"AND|OR|NOT|DEFINED|IN_LIST|MATCHES|ENV|TRUE|FALSE|ON|OFF|EXISTS|TARGET|COMMAND|(?:STR|VERSION_)?(?:EQUAL|LESS|GREATER)(_EQUAL)?"
)


def variables_since(before: str, after: str) -> Iterator[_Line]:
    """Yield line and name of each variable that a later CMake text reads more often than the earlier one, and sets
    nowhere; LexError as of ``parse``."""
    script = parse(after)
    own = set(_set(script))
    yield from (found for found in _more_often(_read(parse(before)), _read(script)) if found[1] not in own)


def _read(script: Script) -> Iterator[_Line]:
    """Yield the variables that commands read, those of the environment and of the cache as ``ENV{NAME}``."""
    for command in script.commands:
        for argument in command.arguments:
            for place, name in _REFERENCE.findall(argument.text):
                yield command.line, f"{place}{{{name}}}" if place else name
            bare = command.name in _CONDITIONS and argument.form is Form.UNQUOTED and _WORD.fullmatch(argument.text)
            if bare and not _OPERATORS.fullmatch(argument.text):
                yield command.line, argument.text


def _set(script: Script) -> Iterator[str]:
    """Yield all words that a command other than a condition may set, among them the parameters of functions."""
    for command in script.commands:
        if command.name not in _CONDITIONS:
            yield from (a.text for a in command.arguments if a.form is Form.UNQUOTED and _WORD.fullmatch(a.text))
