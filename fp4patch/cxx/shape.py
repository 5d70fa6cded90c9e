"""The shape of C++ text: blocks, statements and functions, without names and types.

It is made of tokens alone, all branches of each conditional included, and is right for code as people write it: a macro
that opens a brace is not seen.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fp4patch.cxx.tokens import CONTINUES, OPENS, Kind, Source, Token


def block(source: Source, after: int) -> range | None:
    """Return the tokens between the first braces from a token on; None if a declaration ends before them."""
    depth, first = 0, 0
    for at in range(after, len(source.words)):
        word = source.words[at] if source.directive_of[at] < 0 else ""
        if word == "{":
            depth += 1
            first = first or at
        elif word == "}":
            depth -= 1
            if depth == 0:
                return range(first, at)
        elif word == ";" and not depth:
            break  # a declaration without a body
    return None


class CodePart(NamedTuple):
    """Tokens up to a semicolon or a brace: a statement of a function, or a declaration outside of all."""

    lines: range
    scope: tuple[int, ...] = ()
    """Number of the innermost function, from 1 on, and the offsets of the branches in it, from the outermost on; empty
    outside of functions."""
    block: range = range(0)
    """Lines of the block of a condition, which may be no instruction by itself."""


_NO_CODE = frozenset(("{", "}", ";", "(", ")", "else"))
_BRANCHES = ("if", "else")


def statements(source: Source) -> list[CodePart]:
    """Return the statements and declarations of a text; of a conditional all branches, each from where the first
    began."""
    parts: list[CodePart] = []
    scopes: list[tuple[tuple[int, ...], int]] = [((), -1)]  # of each open brace, and the number of its condition
    head: list[Token] = []
    saved: list[tuple[list[tuple[tuple[int, ...], int]], list[Token]]] = []
    names = {directive.index: directive.name for directive in source.directives}
    functions, directive = 0, -1

    def finish(scope: tuple[int, ...]) -> None:
        if any(token.text not in _NO_CODE for token in head):
            parts.append(CodePart(range(head[0].line, source.line(head[-1].end - 1) + 1), scope))
        head.clear()

    for token in source.tokens:
        scope = scopes[-1][0]
        branches = bool(scope and head and head[0].text in _BRANCHES)
        if token.directive >= 0:
            name = names[token.directive] if token.directive != directive else ""
            directive = token.directive
            if name in OPENS:
                saved.append((list(scopes), list(head)))
            elif name in CONTINUES and saved:
                finish(scope)
                scopes, head = list(saved[-1][0]), list(saved[-1][1])
            elif name == "endif" and saved:
                saved.pop()
        elif token.text == "{":
            condition = branches and "if" in [word.text for word in head[:2]]
            if not scope and _is_function([word.text for word in head]):
                functions += 1
                scope = (functions,)
            finish(scopes[-1][0])
            scopes.append(((*scope, token.start) if branches else scope, len(parts) - 1 if condition else -1))
        elif token.text in "};":
            if token.text == ";":
                head.append(token)
            finish((*scope, head[0].start) if branches else scope)
            if token.text == "}" and len(scopes) > 1:
                _, at = scopes.pop()
                if at >= 0:
                    parts[at] = parts[at]._replace(block=range(parts[at].lines.start, token.line + 1))
        else:
            head.append(token)
    finish(scopes[-1][0])
    return parts


_ATTRIBUTE = re.compile(
    r"\b(?:alignas|__align__|__attribute__|__launch_bounds__|decltype|noexcept) \((?:[^()]|\([^()]*\))*\)"
)
_ANGLES = re.compile(r"<[^<>]*>")
_CLASS = re.compile(r"\b(?:struct|class|union|enum)\b[^(]*$")


def _is_function(head: Sequence[str]) -> bool:
    """Return whether the brace after these tokens, outside of functions, opens a function."""
    text = _ATTRIBUTE.sub("", " ".join(head))
    while text != (shorter := _ANGLES.sub("", text)):
        text = shorter
    return "(" in text and not _CLASS.search(text)


class Function(NamedTuple):
    """A function outside of all blocks of code: ``void f(int) {`` or ``void f(int);``."""

    name: str
    offset: int
    is_definition: bool


def functions(source: Source) -> Iterator[Function]:
    """Yield the functions that a source declares or defines in code that may be compiled, also in namespaces and
    ``extern "C"``."""
    depth: list[bool] = []  # of each open brace, whether declarations can be in it
    head: list[Token] = []
    saved: list[tuple[list[bool], list[Token]]] = []  # as they were at each open #if: its branches begin alike
    for token in source.tokens:
        if token.directive >= 0:
            directive = source.directives[token.directive]
            if token.start != directive.start:
                continue
            if directive.name in OPENS:
                saved.append((list(depth), list(head)))
            elif directive.name in CONTINUES and saved:
                depth, head = list(saved[-1][0]), list(saved[-1][1])
            elif directive.name == "endif" and saved:
                saved.pop()
            continue
        if not source.is_live(token.start):
            continue
        if token.text not in ("{", "}", ";"):
            head.append(token)
            continue
        words = [word.text for word in head]
        is_function = all(depth) and _is_function(words)
        if is_function and token.text != "}" and (name := _function_name(words)):
            yield Function(name, head[0].start, token.text == "{")
        if token.text == "{":
            depth.append("namespace" in words or (words[:1] == ["extern"] and not is_function))
        elif token.text == "}" and depth:
            depth.pop()
        head.clear()


def _function_name(head: Sequence[str]) -> str:
    """Return the name before the first parenthesis that is a declarator's; empty if there is none."""
    for at, word in enumerate(head):
        if word == "=":
            return ""
        if at and word == "(" and _NAME.fullmatch(head[at - 1]) and head[at - 1] not in _NO_DECLARATORS:
            return head[at - 1]
    return ""


_NAME = re.compile(r"[A-Za-z_]\w*")
_NO_DECLARATORS = frozenset({"alignas", "__align__", "__attribute__", "__launch_bounds__", "decltype", "noexcept"})


_CONSTANT = r"sizeof|alignof|true|false|bool|char|short|int|long|float|double|k[A-Z]\w*|[A-Z][A-Z0-9_]+|\d[\w.]*"
_QUALIFIED = r"(?:\w+ (?:< [^<>;?]* > )?: : )+\w+(?: < [^<>;?]* >)?"


def template_choices(source: Source) -> set[int]:
    """Return the lines in which parameters of a template choose, so that code of the line is code of either side."""
    text = " ".join('""' if token.kind is Kind.STRING else token.text for token in source.tokens)
    heads = re.findall(r"\btemplate < ((?:[^<>]|< [^<>]* >)*) >", text)
    names = "|".join({name for head in heads for name in re.findall(r"\b([A-Za-z_]\w*)(?= [=,]|$)", head)})
    if not names:
        return set()
    operand = rf"(?:\b(?:{names}|{_CONSTANT}|{_QUALIFIED})(?!\w)|[=!<>&|+*/%()-])"
    condition = rf"((?![=<>&|*/%]) ?(?:{operand} )+)"
    begins = r"(?:\breturn|(?<![=!<>] )=|[(,;{}?:]) "
    lines = set()
    for found in re.finditer(rf"{begins}{condition}\?|\bif (?:constexpr )?\( {condition}\) ", text):
        decides = found[1] or found[2]
        at = text.count(" ", 0, found.end())
        start = source.starts[at]
        end = start + len(source.text[start:].partition("\n")[0])
        rest = source.words[at : bisect_left(source.starts, end)]
        of_template = re.search(rf"\b(?:{names})\b", decides) and decides.count("(") == decides.count(")")
        if of_template and (found[1] or "else" in rest):
            lines.add(source.line(start))
    return lines


def bodies(source: Source) -> Iterator[tuple[int, int, str]]:
    """Yield first token, the token behind the last one, and name of each function with a body, also of classes."""
    open_: list[bool] = []  # of each open brace, whether it is that of a function
    saved: list[tuple[list[bool], int]] = []
    names = {directive.index: directive.name for directive in source.directives}
    head, directive = 0, -1
    begun: tuple[int, str, int] | None = None
    for at, word in enumerate(source.words):
        of = source.directive_of[at]
        if of >= 0:
            if of != directive:
                directive, name = of, names[of]
                if name in OPENS:
                    saved.append((list(open_), head))
                elif name in CONTINUES and saved:
                    open_, head = list(saved[-1][0]), saved[-1][1]
                elif name == "endif" and saved:
                    saved.pop()
            continue
        if word == "{":
            words = [w for n, w in enumerate(source.words[head:at], head) if source.directive_of[n] < 0]
            is_function = begun is None and _is_function(words)
            if is_function:
                begun = (head, _function_name(words), len(open_))
            open_.append(is_function)
            head = at + 1
        elif word == "}":
            if open_:
                open_.pop()
            if begun and len(open_) <= begun[2]:
                yield begun[0], at + 1, begun[1]
                begun = None
            head = at + 1
        elif word == ";":
            head = at + 1


def one_line_branches(source: Source) -> set[int]:
    """Return the lines that have a whole ``if constexpr``, with what it decides about."""
    lines: set[int] = set()
    for at in source.find(("if", "constexpr", "(")):
        depth, end = 0, at + 2
        opened = False
        while end < len(source.words):
            word = source.words[end]
            depth += (word in "({[") - (word in ")}]")
            opened = opened or (word == "{" and depth == 1)
            if not depth and (word == ";" or (word == "}" and opened)):
                break
            end += 1
        first = source.line(source.starts[at])
        if end < len(source.words) and source.line(source.starts[end]) == first:
            lines.add(first)
    return lines
