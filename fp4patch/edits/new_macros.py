"""Find what a text depends on since an edit beside its target and itself: macros, CMake's variables, the machine."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise, takewhile
from operator import itemgetter
from typing import Literal, TypeGuard

from fp4patch.core.arch import Arch
from fp4patch.core.cuda import known_gpus
from fp4patch.cxx.condition import holds
from fp4patch.cxx.tokens import Directive, Source, lex
from fp4patch.edits.cmake import Command, Form, Script, parse

_OF_TARGETS = re.compile(r"__CUDACC__|__CUDA_ARCH(?!_LIST__)(_\w+)?__|__CUDA_ARCH_FEAT_\w+|FP4PATCH_\w+")
"""Macros that differ between the targets of a verification, and those that its probes define. The list of a build's
targets is not among them: a probe is compiled for one."""
_OF_COMPILERS = re.compile(
    r"__[A-Z][A-Z0-9_]*__|__(?:cplusplus|clang__|linux__)|NDEBUG|CUDA(?:RT)?_VERSION|wchar_t|char|long|W?CHAR_M(?:AX|IN)|U?LONG_M(?:AX|IN)"
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
    declared = {name for text in after.values() for name in _functions(lex(text))} | own
    for path, line, name in new_lines(before, after, _called):
        if name not in declared and name not in lex(before.get(path, "")).words:
            yield path, line, name
    for path, found in groupby(new_lines(before, after, _in_expressions), itemgetter(0)):
        was = lex(before.get(path, ""))
        known_here = own.union(_in_code(was), _in_macros(was), _declared(lex(after[path])))
        yield from (one for one in found if one[2] not in known_here)


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


def _more_often(
    before: Iterable[_Line], after: Iterable[_Line], changed: Collection[int] = frozenset()
) -> Iterator[_Line]:
    """Yield the names that occur more often than before: as often as they do so, on the lines that changed; where none
    of these has the name, once, with the last of its lines."""
    earlier, lines = Counter(name for _, name in before), list(after)
    for name, count in Counter(name for _, name in lines).items():
        if more := max(0, count - earlier[name]):
            places = sorted(line for line, other in lines if other == name)
            yield from ((line, name) for line in [line for line in places if line in changed][-more:] or places[-1:])


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


def _is_text(source: Source) -> Callable[[int], bool]:
    """Return whether a token is in code, or in what a macro stands for: a macro may name another."""
    named = {first for one in source.directives if one.name == "define" and (first := next(iter(one.tokens), None))}
    of = [one.name == "define" for one in source.directives]
    names = {token.start for token in named}
    return lambda at: (
        source.directive_of[at] < 0
        or (of[source.directive_of[at]] and source.starts[at] not in names and source.words[at] not in ("#", "define"))
    )


def _of_compilers(source: Source) -> Iterator[_Line]:
    is_text = _is_text(source)
    for at, (before, word) in enumerate(pairwise(("", *source.words))):
        after = source.words[at + 1] if at + 1 < len(source.words) else ""
        # A `long` has the size of the host's, a `long long` has 64 bits; of a `char` the sign is the host's.
        fixed = before == "long" or after in ("long", "double") if word == "long" else before in ("signed", "unsigned")
        literal = "long" if _LONG.fullmatch(word) else "char" if _SIGNED.match(word) else ""
        if not literal and _CHARACTER.match(word):  # decltype('a') and auto c = 'a' are of type char
            behind = source.words[max(0, at - 3) : at]
            literal = "char" if behind[-2:] == ("decltype", "(") or behind[::2] == ("auto", "=") else ""
        in_macro = source.directive_of[at] >= 0
        known = _OF_TARGETS.fullmatch(word) if in_macro else fixed
        if is_text(at) and (literal or (_OF_COMPILERS.fullmatch(word) and not (known or fixed))):
            yield source.line(source.starts[at]), literal or word
        elif in_macro and word == "#" and before == "#":  # it makes names that are not in the text
            yield source.line(source.starts[at]), "##"


# Example: 0x7fffffffUL
_LONG = re.compile(r"(0[xX][\da-fA-F']+|\d[\d']*)([uU]?[lL]|[lL][uU])")
_CHARACTER = re.compile(r"'|\"")
# Example: '\xff'
_SIGNED = re.compile(r"'(\\x0*[89a-fA-F][0-9a-fA-F]|\\[23][0-7]{2}|[^\x00-\x7f])'")
"""A character of which the value is negative where a ``char`` has a sign."""


# Example: CUTLASS_ENABLE_F16C
_MACRO = re.compile(r"(?!FP4PATCH_)[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]")


def _in_expressions(source: Source) -> Iterator[_Line]:
    """Yield line and name of what is a macro by its name, outside of directives. One that a word follows, as it does
    CUTLASS_DEVICE, is no operand."""
    is_text = _is_text(source)
    for at, (word, after) in enumerate(pairwise((*source.words, ""))):
        is_last = source.directive_of[at : at + 2] != [source.directive_of[at]] * 2
        if _MACRO.fullmatch(word) and is_text(at) and (is_last or not after.isidentifier()):
            yield source.line(source.starts[at]), word


# Example: __fmul_rn
_PURE_CALL = re.compile(
    r"__\w+2\w+|__\w+_as_\w+|__[fdhuib]?(?:add|sub|mul|fma|fmaf|div|max|min|neg|abs|sqrt|rcp)\w*"
    r"|__(?:byte_perm|low\w+|high\w+|clz\w*|ffs\w*|popc\w*|brev\w*|halves\w*|attribute__|declspec)"
    r"|__builtin_(?:memcpy|fabsf?|fmaxf?|fminf?|bit_cast|clz\w*|ctz\w*|popcount\w*|assume\w*|expect|unreachable)"
    r"|make_\w+\d|u?int\d*(?:_t)?|[a-z]+[1-4]|float|double|bool|char|short|long|unsigned|signed|void|size_t"
    r"|alignas|alignof|asm|catch|decltype|defined|explicit|for|if|noexcept|requires|return|sizeof|static_assert"
    r"|switch|while|operator|typename|constexpr|volatile|__asm__|__asm|__launch_bounds__|__align__"
    r"|(?:static|const|reinterpret|bit)_cast|f?(?:abs|max|min)f?|isnan|isinf|signbit|copysignf?|ldexpf?|fmaf?"
    r"|move|forward|declval|make_pair|make_tuple|get|memcpy|assert|[A-Z]\w*"
)
"""Calls whose result depends on their arguments alone, in code of both sides; types, keywords and templates."""


# Example: %smid
_REGISTER = re.compile(
    r"%(?:(?:global)?(?:clock|timer)\w*|n?smid|n?warpid|gridid|envreg\d+|pm\d+\w*|(?:dynamic|total)_\w+)"
)


_BEFORE_CALLS = frozenset(("return", "else", "co_return", "throw", "case", "do"))
"""What is before a call, and before a declaration of a function never."""


def _called(source: Source) -> Iterator[_Line]:
    """Yield line and name of each function that is called and may ask for something: one of no namespace, or of std;
    and of each register of PTX that says where or when code runs.

    A method is called of an object that something else gave, and a function of another namespace is the project's.
    """
    words = source.words
    is_text = _is_text(source)
    for at, (word, after) in enumerate(pairwise((*words, ""))):
        if word[-1] == '"':
            yield from ((source.line(source.starts[at]), register) for register in _REGISTER.findall(word))
        if after != "(" or not word.isidentifier() or _PURE_CALL.fullmatch(word) or not is_text(at):
            continue
        first = at
        while words[max(0, first - 2) : first] == (":", ":"):
            owner = words[first - 3] if first > 2 else ""
            first -= 3 if owner.isidentifier() and owner not in _BEFORE_CALLS else 2
        is_member = words[max(0, at - 1) : at] == (".",) or words[max(0, at - 2) : at] == ("-", ">")
        if not is_member and (first == at or words[first] in (":", "std")):
            yield source.line(source.starts[at]), word


def _functions(source: Source) -> Iterator[str]:
    """Yield the names that a text defines as functions, types and templates, or binds."""
    words = source.words
    for last, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
        if not word.isidentifier():
            continue
        is_type = last in ("struct", "class", "using", "typename", "enum", "namespace")
        follows = after in ("=", "{", ";", ",", ")") or (
            after == "(" and (last.isidentifier() or last in ("*", "&", ">"))
        )
        is_declared = last not in _BEFORE_CALLS and (last.isidentifier() or last in ("*", "&", ">"))
        if is_type or (follows and is_declared):
            yield word


def _in_code(source: Source) -> list[str]:
    """Return the words outside of directives."""
    return [word for at, word in enumerate(source.words) if source.directive_of[at] < 0]


def _in_macros(source: Source) -> Iterator[str]:
    """Yield the words of what macros stand for."""
    for one in source.directives:
        if one.name == "define":
            yield from (token.text for token in one.tokens[1:])


def _declared(source: Source) -> Iterator[str]:
    """Yield the names of the enumerators and constants that code declares. With a macro of that name, which would have
    a value in its place, the declaration would not compile."""
    words = _in_code(source)
    opened: list[bool] = []  # of each bracket: whether it is that of an enumeration's members
    for at, (last, word, after) in enumerate(zip(("", *words), words, (*words[1:], ""), strict=False)):
        if word in _PAIRS:
            opened.append(word == "{" and _ENUM in _head(words, at))
        elif word in _PAIRS.values():
            del opened[-1:]
        elif word.isidentifier():
            head = _head(words, at)
            bound = after == "=" and words[at + 2 : at + 3] != ["="]
            begun = after in ("{", "[") and "=" not in head and (last.isidentifier() or last in ("*", "&", ">"))
            member = opened[-1:] == [True] and last in ("{", ",")
            if member or ((bound or begun) and not _CONSTANT.isdisjoint(head)):
                yield word


_PAIRS = {"{": "}", "(": ")", "[": "]"}
_ENUM = "enum"
_CONSTANT = frozenset(("constexpr", "const"))


def _head(words: Sequence[str], at: int) -> list[str]:
    """Return the words of a declaration that are before one of its own."""
    back = (words[before] for before in range(at - 1, -1, -1))
    return list(takewhile(lambda word: word not in (";", "{", "}", "(", ")"), back))


_PURE = frozenset((
    "abs", "all", "any", "bin", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "filter", "float",
    "format", "frozenset", "hex", "int", "isinstance", "iter", "len", "list", "map", "max", "min", "next", "oct",
    "ord", "pow", "print", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple",
    "zip", "re", "math",
))  # fmt: skip
"""Builtins, and modules, whose results depend on their arguments alone. That of ``repr`` may have an address in it."""
_WITHOUT_ORDER = frozenset(("all", "any", "bool", "frozenset", "len", "max", "min", "set", "sorted", "sum"))
"""Those that give the same for each order of what is in a set."""
_TYPES = (str, bytes, int, float, list, tuple, dict, set, re, re.Pattern, re.Match)
_METHODS = frozenset(name for of in _TYPES for name in dir(of) if not name.startswith("_"))
_TEXTS = frozenset(("str", "format", "bytes", "print"))
"""Those that make a text of a value, in which its address may be: of one that is no number and no text."""
_Name = tuple[str, int, str]
"""The function around it, its line, and the name."""


def asked_since(before: str, after: str) -> Iterator[_Line]:
    """Yield line and name of each name in a later Python text that its function had not before, that it does not bind,
    and that is neither a pure builtin nor a method of its values; for a variable of the environment its own name.
    SyntaxError as of ``ast.parse``.

    What has the same names asks for nothing else than before. An impure builtin (``getattr``) says nothing by itself:
    each further use counts, and so does each question for the environment.
    """
    tree = ast.parse(after)
    was = ast.parse(before)
    plain = _compared(was) | _counted(tree)
    old, new = _asked(was, plain), _asked(tree, plain | set(_plainly_bound(tree, plain)))
    seen = Counter((place, name) for place, _, name in old)
    bound = set(_bound(tree))
    more = Counter((place, name) for place, _, name in new)
    for place, line, name in new:
        impure = name.startswith("$") or hasattr(builtins, name)
        if more[place, name] > seen[place, name] if impure else not (seen[place, name] or name in bound):
            yield line, name.lstrip("$")


def _compared(tree: ast.Module) -> set[str]:
    """Return the names that are numbers or texts: those that a text compares with one, or counts with."""
    found = set[str]()
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        sides += [node.left, node.right] if isinstance(node, ast.BinOp) else []
        if any(_is_constant(side) for side in sides):
            found.update(side.id for side in sides if isinstance(side, ast.Name))
    return found


def _counted(tree: ast.Module) -> set[str]:
    """Return the names that are numbers, since a text divides them by one, or takes one from them."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left=ast.Name(id=name), op=ast.FloorDiv() | ast.Sub(), right=ast.Constant(value=int())):
                found.add(name)
    return found


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(map(_is_constant, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | bytes)


def _plainly_bound(tree: ast.Module, plain: Collection[str]) -> Iterator[str]:
    """Yield the names that a text sets to numbers and texts alone."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr):
            values.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.comprehension | ast.For) and isinstance(node.target, ast.Name):
            is_range = isinstance(node.iter, ast.Call) and getattr(node.iter.func, "id", "") == "range"
            values.setdefault(node.target.id, []).append(
                ast.Constant(0) if is_range or _is_constant(node.iter) else node.iter
            )
    for name, several in values.items():
        if all(_is_plain(value, plain) for value in several):
            yield name


def _is_plain(value: ast.expr, plain: Collection[str]) -> bool:  # noqa: PLR0911 - a case a line
    """Tell whether a value is a number or a text, of which the text is the same in each process."""
    match value:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Name(id=name):
            return name in plain
        case ast.Call(func=ast.Name(id=name)):
            return name in _PURE - _LAZY
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _OF_TEXTS
        case ast.BinOp(left=left, right=right):
            return _is_plain(left, plain) or _is_plain(right, plain)
        case ast.UnaryOp(operand=inner):
            return isinstance(value.op, ast.Not) or _is_plain(inner, plain)
        case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
            return all(_is_plain(one, plain) for one in several)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_plain(body, plain) and _is_plain(orelse, plain)
    return False


_LAZY = frozenset(("dict", "enumerate", "filter", "frozenset", "iter", "list", "map", "max", "min", "next", "re",
    "reversed", "set", "slice", "sorted", "sum", "tuple", "zip"))  # fmt: skip
"""Those whose value has an address in its text, or is one of those that it was given."""
_OF_TEXTS = frozenset(name for name in dir(str) if not name.startswith("_"))


def _told(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values of which a node makes a text."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _TEXTS:
            yield from node.args
        case ast.Call(func=ast.Attribute(attr="format" | "format_map")):
            yield from node.args
            yield from (keyword.value for keyword in node.keywords)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name), *several]) if name in _TEXTS:
            yield from several
        case ast.FormattedValue(value=value):
            yield value
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=value):
            yield from value.elts if isinstance(value, ast.Tuple) else (value,)


def _asked(tree: ast.Module, plain: Collection[str]) -> list[_Name]:
    """Return the names that a module reads; a variable of the environment begins with ``$``."""
    found: list[_Name] = []
    no_order = set[ast.AST]()

    def visit(node: ast.AST, place: str) -> None:
        if isinstance(node, ast.Compare):
            no_order.update(of for op, of in zip(node.ops, node.comparators, strict=True) if isinstance(op, _IS_IN))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WITHOUT_ORDER:
            no_order.update(node.args)
        if _is_set(node) and node not in no_order:
            found.append((place, node.lineno, "set"))  # the order of its members is another in each process
        if any(not _is_plain(told, plain) for told in _told(node)):
            found.append((place, getattr(node, "lineno", 1), "str"))
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                place = f"{place}.{name}"
            case ast.Call(
                func=ast.Attribute(value=of, attr="get") | ast.Attribute(value=of, attr="getenv") as function
            ) if (_is_environment(of) or function.attr == "getenv") and node.args:
                found.append((place, node.lineno, _variable(node.args[0])))
                for argument in node.args:
                    visit(argument, place)
                return
            case ast.Subscript(value=of, slice=key) if _is_environment(of):
                found.append((place, node.lineno, _variable(key)))
                visit(key, place)
                return
            case ast.Name(id=name, ctx=ast.Load()) if name not in _PURE and not _is_error(name):
                found.append((place, node.lineno, name))
            case ast.Attribute(attr=name) if name not in _METHODS:
                found.append((place, node.lineno, "$environ" if name == "environ" else name))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.extend((place, node.lineno, one.name) for one in names)
        for child in ast.iter_child_nodes(node):
            visit(child, place)

    visit(tree, "")
    return found


_IS_IN = (ast.In, ast.NotIn)


def _is_set(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def _is_environment(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _variable(name: ast.expr) -> str:
    return f"${name.value}" if isinstance(name, ast.Constant) and isinstance(name.value, str) else "$environ"


def _is_error(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield the names that expressions and assignments of a text bind, which are made of other names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


_WORD = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"(?:(ENV|CACHE)|\$)\{(\w+)\}")
# Example: $<CONFIG
_GENERATED = re.compile(r"\$<[A-Z_]+")
_PUT_IN = re.compile(r"@(\w+)@")
_LISTS_READ = frozenset(("LENGTH", "GET", "JOIN", "SUBLIST", "FIND"))
_SETS_NOTHING = frozenset(("message", "return", "break", "continue", "else", "endif", "endforeach", "endwhile"))
_CONDITIONS = frozenset(("if", "elseif", "while"))
_PURE_COMMANDS = frozenset((
    "break", "cmake_parse_arguments", "continue", "else", "elseif", "endforeach", "endfunction", "endif",
    "endmacro", "endwhile", "foreach", "function", "if", "list", "macro", "math", "message", "return",
    "separate_arguments", "set", "string", "unset", "while",
))  # fmt: skip
"""Commands that depend on their arguments and on variables alone, and change variables alone."""
_IMPURE_STRINGS = frozenset(("RANDOM", "TIMESTAMP", "UUID"))
_OPERATORS = re.compile(
    r"AND|OR|NOT|DEFINED|IN_LIST|MATCHES|TRUE|FALSE|ON|OFF|(?:STR|VERSION_)?(?:EQUAL|LESS|GREATER)(_EQUAL)?"
)


def variables_since(before: str, after: str) -> Iterator[_Line]:
    """Yield line and name of each variable that a later CMake text reads more often than the earlier one, and sets
    nowhere, and of each command and operator that it has more often and that depends on more than its arguments.
    LexError as of ``parse``."""
    script = parse(after)
    own = set(_set(script))
    matcher = SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    changed = {
        line for kind, _, _, first, end in matcher.get_opcodes() if kind != "equal" for line in range(first, end)
    }
    found = _more_often(_read(parse(before)), _read(script), {line + 1 for line in changed})
    yield from ((line, name) for line, name in found if name not in own)


def _read(script: Script) -> Iterator[_Line]:
    """Yield the variables that commands read, those of the environment and of the cache as ``ENV{NAME}``; and commands
    that are not pure."""
    for command in script.commands:
        first = command.arguments[0].text if command.arguments else ""
        if command.name not in _PURE_COMMANDS or (command.name == "string" and first in _IMPURE_STRINGS):
            yield command.line, f"{command.name}("
        for argument in command.arguments:
            for place, name in _REFERENCE.findall(argument.text):
                yield command.line, f"{place}{{{name}}}" if place else name
            yield from ((command.line, name) for name in _GENERATED.findall(argument.text))
            if command.name == "string" and first == "CONFIGURE":
                yield from ((command.line, name) for name in _PUT_IN.findall(argument.text))
        yield from ((command.line, name) for name in _named_lists(command))
        for argument in command.arguments:
            bare = command.name in _CONDITIONS and argument.form is Form.UNQUOTED and _WORD.fullmatch(argument.text)
            if bare and not _OPERATORS.fullmatch(argument.text):
                yield command.line, argument.text


def _named_lists(command: Command) -> Iterator[str]:
    """Yield the variables that a command reads by their bare names."""
    words = [argument.text for argument in command.arguments]
    if command.name == "list" and words[:1] and words[0] in _LISTS_READ:
        yield from words[1:2]
    if command.name == "foreach" and "IN" in words:
        modes = {"LISTS", "ZIP_LISTS"}
        start = next((at for at, word in enumerate(words) if word in modes), len(words))
        yield from takewhile(lambda word: word != "ITEMS", words[start + 1 :])


def _set(script: Script) -> Iterator[str]:
    """Yield all words that a command other than a condition may set, among them the parameters of functions."""
    for command in script.commands:
        if command.name in _CONDITIONS or command.name in _SETS_NOTHING:
            continue
        words = [a.text for a in command.arguments if a.form is Form.UNQUOTED]
        if command.name in ("set", "unset", "foreach", "separate_arguments"):
            words = words[:1]
        elif command.name == "list" and words[:1] and words[0] in _LISTS_READ:
            words = words[-1:]
        yield from (word for word in words if _WORD.fullmatch(word))
