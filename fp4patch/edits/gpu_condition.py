"""Conditions on a GPU, evaluated for several: may one hold for SM120 and not for SM121?

A condition is an expression of Python's ``ast``, which is made of C++ and CMake, too. What is about the GPU has its
value for each of ``GPUS``, in whatever notation it is compared with; all else is unknown, and may be true or false. So
the notation of a test does not matter: ``arch == 0x78``, ``cap[0] == 12 and cap[1] < 1`` and ``not 120 != arch`` part
the two alike, and ``arch == 120 or arch == 121`` does not.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from operator import add, and_, floordiv, ge, gt, invert, le, lshift, lt, mod, mul, neg, or_, pos, rshift, sub, xor
from typing import NamedTuple

ARCHS = frozenset((70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121))
_OTHERS = (80, 86, 89, 90, 100, 103, 110, 130)
_NEXT = 122
"""No GPU: a condition that names SM121 parts it from this one, and one that leaves out what is not SM120 does not."""
_GPUS = (*_OTHERS, 120, 121, _NEXT)
_MOST = 8
"""Unknown parts of a condition of which all combinations are tried."""

# Example: arch
_SUBJECT = re.compile(
    r"""(?i:capab|(?<![a-z])caps?\b|device_prop|(?<![a-z])cc(?![a-z])|version|gpu(?!s|_?(?:id|count|num|mem|idx)))
      | (?<![a-z])arch(?!ive) | (?:cuda|gpu|sm|cc|nv)arch | Arch(?!ive) | ARCH(?!IVE)
      | (?:(?<![a-zA-Z])(?:sm|SM|Sm)|(?<=[a-z])S[mM])(?![a-z])
        (?!_?(?i:counts?|scale|margin|size|num|per|mem|idx|id|limit)(?![a-z]))""",
    re.VERBOSE,
)
"""Names of what is a GPU."""
# Example: cuda_version
_OTHER_VERSION = re.compile(
    r"(?i)(?:cuda|cudacc|cudart|nvcc|toolkit|driver|compiler|runtime|torch|triton|cmake|ptx|cudnn|python)\w*_?ver"
    r"|version\.(?:cuda|hip)|cuda_?version|cuda_?(?:major|minor)|(?:nvcc|driver|toolkit)_?(?:major|minor)|_VER_"
)
# Example: arch_family
_FAMILY = re.compile(r"(?i)\w*family(?!_specific)\w*")
"""Names of what GPUs have in common: vLLM's ``arch_family`` is sm120 for SM121, too."""
_BEHIND = r"(?:_?(?i:version|ver|capability|cap|cc|arch|sm|compute|number|num))*_?"
# Example: major_capability
_MAJOR = re.compile(r"(?:\w*_|\w*[a-z])?(?:major|Major|MAJOR|maj)" + _BEHIND)
_MINOR = re.compile(r"(?:\w*_|\w*[a-z])?(?:minor|Minor|MINOR)" + _BEHIND)
# Example: is_sm120a
_NAME = re.compile(
    r"(?i)_*(?:(?:is|has|k|cc|arch|gpu|target|exactly|device|cuda|only)_?)*sm_?(12[01])[af]?_?"
    r"|__CUDA_ARCH_FEAT_SM(12[01])_ALL|CUTLASS_ARCH_MMA_SM(12[01])[AF]?_ENABLED"
    r"|NV_(?:IS_EXACTLY|HAS_FEATURE)_SM_(12[01])[af]?"
)
"""Names of one of the two; a longer name is that of a kernel."""
# Example: sm_120a
_TEXT = re.compile(
    r"(?i)(?:(?:sm|compute)_?)(\d{2,3})[af]?|(\d{1,2})\.(\d)[af]?(?:\+ptx)?|(\d{2,3})(?:[af]|-real|-virtual)?"
    r"|\((\d{1,2}), (\d)\)"
)
_IS_EXACTLY = re.compile(
    r"(?i)_*is_?(?:exact(?:ly)?_?)?(?:(?:device|gpu|cuda|compute)_?)*(?:capability|arch|sm|cc)(?:_?v)?"
)
_PAIRS = re.compile(r"(?i)capab|pair|tuple|array|^tie$")
_STRIPS = frozenset(
    (
        "as_version_str",
        "c_str",
        "casefold",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "replace",
        "rstrip",
        "strip",
        "to_int",
        "upper",
        "value",
    )
)
_SEARCHES = frozenset(("match", "fullmatch", "search", "regex_match", "regex_search"))
_SPELLED = ("sm_{0}", "sm{0}", "{0}", "sm_{0}a", "compute_{0}", "{1}.{2}", "{1}.{2}a", "SM{0}")
"""What a regular expression may be matched with."""
_ASKS = frozenset(
    (
        "StartsWith",
        "__eq__",
        "contains",
        "count",
        "ends_with",
        "endswith",
        "equals",
        "starts_with",
        "startswith",
        "strstr",
    )
)
_OF_PLATFORMS: Mapping[str, Callable[[int, int], bool]] = {
    "has_device_capability": ge,
    "is_device_capability_family": lambda gpu, asked: gpu // 10 == asked // 10,
}
"""vLLM's functions of the capability that is asked for."""
_COMPARES = frozenset(("strcmp", "strncmp", "strcasecmp", "compare", "memcmp"))
_ARITHMETIC: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
    ast.BitAnd: and_,
    ast.BitOr: or_,
    ast.BitXor: xor,
    ast.LShift: lambda a, b: lshift(a, b & 63),
    ast.RShift: lambda a, b: rshift(a, b & 63),
    ast.Div: lambda a, b: a / b,  # type: ignore[dict-item,return-value]
}
_SIGNS: Mapping[type, Callable[[int], int]] = {ast.USub: neg, ast.UAdd: pos, ast.Invert: invert}
_FUNCTIONS: Mapping[str, type[ast.cmpop]] = {
    **dict.fromkeys(("eq", "equal_to", "is_same", "is_same_v", "__eq__", "equals"), ast.Eq),
    **dict.fromkeys(("ne", "not_equal_to", "__ne__"), ast.NotEq),
    **dict.fromkeys(("lt", "less", "__lt__"), ast.Lt),
    **dict.fromkeys(("le", "less_equal", "__le__"), ast.LtE),
    **dict.fromkeys(("gt", "greater", "__gt__"), ast.Gt),
    **dict.fromkeys(("ge", "greater_equal", "__ge__"), ast.GtE),
}
"""Operators as functions, of both languages."""
_ORDERS: Mapping[type, Callable[[object, object], bool]] = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}  # type: ignore[dict-item]


class Gpu(NamedTuple):
    """What is about the GPU, in a notation that is not known."""

    number: int


class Target(NamedTuple):
    """A name of a GPU: as a condition, whether it is the one."""

    number: int


class Unknown(NamedTuple):
    """All else."""

    node: object = None

    def __str__(self) -> str:
        return _text(self.node) if isinstance(self.node, ast.AST) else ""


class Function(NamedTuple):
    """A macro with parameters, or a function that is one expression."""

    parameters: Sequence[str]
    body: ast.expr


class Pair(tuple[int, int]):
    """Major and minor as an object of their own: no other pair is compared with one."""

    __slots__ = ()


def meant(text: str) -> int | None:
    """Return the number of the GPU that a text names, as ``sm_120a`` or ``12.0``; None if it names none."""
    if found := _TEXT.fullmatch(text):
        return _scaled(int("".join(part for part in found.groups() if part)))
    return None


def named(name: str) -> int | None:
    """Return 120 or 121 for a name of that GPU; None for any other, and for one of the family, such as sm120f."""
    found = _NAME.fullmatch(name) if "12" in name and not name.endswith("f") else None
    return int(next(filter(None, found.groups()))) if found else None


def is_subject(text: str) -> bool:
    """Tell whether a name, or the text of an expression, is about a GPU."""
    return _SUBJECT.search(text) is not None and not any(one.search(text) for one in (_OTHER_VERSION, _FAMILY))


@cache
def _is_word_of_gpu(word: str) -> bool:
    return "12" in word or any(find(word) for find in (_SUBJECT.search, _MAJOR.fullmatch, _MINOR.fullmatch, meant))


def _scaled(number: int) -> int:
    return number // 10 if number >= 700 and number % 10 == 0 else number


@dataclass
class _World:
    """Values for one GPU, and for one choice of what is not known."""

    names: Mapping[str, ast.expr]
    functions: Mapping[str, Function]
    gpu: int
    scale: int = 1
    choice: bool = False
    """The truth of what is not known."""
    resolving: set[str] = field(default_factory=set)
    known: dict[str, object] = field(default_factory=dict)
    """Values of names: each may be made of others."""

    def truth(self, value: object) -> bool:
        if isinstance(value, Target):
            return value.number == self.gpu
        if isinstance(value, Gpu | Unknown):
            return self.choice
        return bool(value)

    def value(self, node: ast.AST) -> object:
        """Return the value of an expression."""
        made = getattr(self, f"_{type(node).__name__.lower()}", None)
        result = made(node) if made else None
        return Unknown(node) if result is None else result

    def _resolved(self, name: str) -> object:
        if name not in self.known:
            self.resolving.add(name)
            self.known[name] = self.value(self.names[name])
            self.resolving.discard(name)
        return self.known[name]

    def _constant(self, node: ast.Constant) -> object:
        return node.value

    def _name(self, node: ast.Name) -> object:
        if node.id in self.names and node.id not in self.resolving:
            value = self._resolved(node.id)
            is_constant = type(value) in (int, float, str, tuple, Pair)
            if not isinstance(value, Unknown) and not (is_constant and node.id.islower() and is_subject(node.id)):
                return value
        number = named(node.id)
        return self._about(node.id, node.id) if number is None else Target(number)

    def _about(self, name: str, text: str) -> object:
        """Return what a name is about, with the text around it."""
        if _OTHER_VERSION.search(text):
            return None
        if name == "npos":  # what `find` of C++ returns where it finds nothing
            return -1
        if _MAJOR.fullmatch(name):
            return self.gpu // 10
        if _MINOR.fullmatch(name):
            return self.gpu % 10
        return Gpu(self.gpu) if is_subject(name) else None

    def _attribute(self, node: ast.Attribute) -> object:
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        number = named(node.attr)
        if number is not None:  # arch::Sm120 is CUTLASS's tag of the family: it has none of SM121
            return Unknown(node) if owner == "arch" and node.attr.startswith("Sm") else Target(number)
        of_class = None if is_subject(node.attr) else self.names.get(node.attr)
        if isinstance(of_class, ast.Constant) and owner[:1].isupper():
            return of_class.value  # an enumerator
        if node.attr in ("value", "name"):
            return self.value(node.value)
        if node.attr in ("first", "second") and isinstance(self.value(node.value), Gpu):
            return self.gpu // 10 if node.attr == "first" else self.gpu % 10
        return self._about(node.attr, _text(node))

    def _subscript(self, node: ast.Subscript) -> object:
        index = None if isinstance(node.slice, ast.Slice) else self.value(node.slice)
        if isinstance(index, str) and isinstance(node.slice, ast.Constant):
            return self._about(index, index)
        value = self.value(node.value)
        if isinstance(node.slice, ast.Slice) and isinstance(value, Gpu):
            return value
        if type(index) is int:
            if isinstance(value, Gpu):
                return (self.gpu // 10, self.gpu % 10)[index] if -2 <= index < 2 else None
            if isinstance(value, tuple | str) and not isinstance(value, Unknown) and -len(value) <= index < len(value):
                return value[index]
        return Gpu(self.gpu) if isinstance(value, Unknown) and is_subject(_text(node.slice)) else None

    def _namedexpr(self, node: ast.NamedExpr) -> object:
        value = self.value(node.value)
        return self.value(node.target) if isinstance(value, Unknown) else value

    def _elements(self, node: ast.Tuple | ast.List | ast.Set) -> object:
        return tuple(map(self.value, node.elts))

    _tuple = _list = _set = _elements

    def _ifexp(self, node: ast.IfExp) -> object:
        return self.value(node.body if self.truth(self.value(node.test)) else node.orelse)

    def _boolop(self, node: ast.BoolOp) -> object:
        values = [self.truth(self.value(value)) for value in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)

    def _unaryop(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        return _SIGNS[type(node.op)](value) if isinstance(value, int) else None

    def _binop(self, node: ast.BinOp) -> object:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, str) and isinstance(node.op, ast.Mod):
            return self._formatted(left, right)
        if isinstance(node.op, ast.Add) and isinstance(left, str | tuple) and type(left) is type(right):
            return left + right  # type: ignore[operator]
        if isinstance(node.op, ast.BitOr) and isinstance(left, tuple) and type(left) is type(right) is tuple:
            return left + right
        numbers = [self._number_of(side) for side in (left, right)]
        make = _ARITHMETIC.get(type(node.op))
        if make is None or None in numbers or any(abs(number) > 1 << 64 for number in numbers):  # type: ignore[arg-type]
            return None
        try:
            return make(*numbers)  # type: ignore[arg-type]
        except (ArithmeticError, TypeError, ValueError):
            return None

    def _number_of(self, value: object) -> int | float | None:
        if isinstance(value, Gpu):
            return value.number * self.scale
        if isinstance(value, Target):
            return value.number
        return value if isinstance(value, int | float) else None

    def _formatted(self, form: str, value: object) -> str | None:
        values = value if isinstance(value, tuple) and not isinstance(value, Gpu | Unknown | Target) else (value,)
        if isinstance(value, Gpu) and form.count("%") > 1:
            values = (self.gpu // 10, self.gpu % 10)
        plain = [self.gpu if isinstance(part, Gpu) else part for part in values]
        if not all(isinstance(part, int | str) for part in plain) or re.search(r"%\D?\d{3,}", form):
            return None
        try:
            return form % tuple(plain)
        except (TypeError, ValueError):
            return None

    def _joinedstr(self, node: ast.JoinedStr) -> object:
        parts = [self._piece(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
        return None if None in parts else "".join(parts)  # type: ignore[arg-type]

    def _piece(self, node: ast.expr) -> str | None:
        value = self.value(node)
        if isinstance(value, Gpu):
            return str(value.number)
        return str(value) if isinstance(value, int | str) else None

    def _compare(self, node: ast.Compare) -> object:
        sides = [self.value(side) for side in (node.left, *node.comparators)]
        if any(isinstance(side, Gpu) for side in sides):
            sides = [self._as_pair(side) for side in sides]
        held = [self._held(*pair) for pair in zip(node.ops, sides, sides[1:], strict=False)]
        return False if False in held else Unknown(node) if None in held else True

    def _as_pair(self, value: object) -> object:
        """Return the pair that a call with two numbers makes: `Key{12, 0}`, as what a GPU is compared with."""
        if isinstance(value, Unknown) and isinstance(value.node, ast.Call):
            parts = [self.value(argument) for argument in value.node.args]
            while len(parts) == 1 and type(parts[0]) is tuple:
                parts = [*parts[0]]
            return tuple(parts) if len(parts) == 2 and all(type(part) is int for part in parts) else value
        return value

    def _held(self, op: ast.cmpop, one: object, other: object) -> bool | None:
        if isinstance(op, ast.In | ast.NotIn):
            result = self._has(other, one)
        elif isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
            result = self._same(one, other)
        else:
            result = self._ordered(op, one, other)
        return None if result is None else result != isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)

    def _has(self, several: object, one: object) -> bool | None:
        if isinstance(several, Unknown | Gpu) and isinstance(one, str):  # "12.0" in archs, "sm_120" in name
            number = meant(one)
            is_about = isinstance(several, Gpu) or one[:1].isalpha()
            return None if number is None or not is_about else number == self.gpu
        if isinstance(several, Gpu | Unknown):
            return several.number == one.number if isinstance(several, Gpu) and isinstance(one, Target) else None
        if isinstance(several, str) and isinstance(one, Gpu):  # arch in "sm_100 sm_120"
            several = tuple(re.findall(r"[\w.]+", several))
        if not isinstance(several, tuple):
            return None
        found = [self._same(one, element) for element in several]
        return True if True in found else None if None in found else False

    def _same(self, one: object, other: object) -> bool | None:  # noqa: PLR0911 - a case a line
        if isinstance(other, Gpu) or (isinstance(other, Target) and not isinstance(one, Gpu)):
            one, other = other, one
        if isinstance(one, Gpu):
            number = _number(other)
            return None if number is None else number == one.number
        if isinstance(one, Target):
            if isinstance(other, bool) or other in (0, 1):
                return (one.number == self.gpu) == bool(other)
            number = _number(other)
            return one.number == (self.gpu if number is None else number)
        for value, unknown in ((one, other), (other, one)):
            is_of_gpu = isinstance(value, Pair) or (isinstance(value, str) and value[:1].isalpha())
            if isinstance(unknown, Unknown) and is_of_gpu and not _FAMILY.search(str(unknown)):
                number = _number(value)
                return None if number is None else number == self.gpu
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return None
        if isinstance(one, str) and isinstance(other, str):
            return one == other or (None not in (number := meant(one), meant(other)) and meant(one) == meant(other))
        if {type(one), type(other)} == {int, str}:  # a part of a text, of which the number is known
            return str(one) == str(other)
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            held = [self._same(a, b) for a, b in zip(one, other, strict=True)]
            return False if False in held else None if None in held else True
        return one == other

    def _ordered(self, op: ast.cmpop, one: object, other: object) -> bool | None:
        sides = [one, other]
        if isinstance(op, ast.LtE) and type(one) is type(other) is tuple and len(one) == 1:  # {arch} <= {90, 120}
            return self._has(other, one[0])
        if any(isinstance(side, Gpu) for side in sides):
            sides = [_number(side) for side in sides]
        order = _ORDERS.get(type(op))
        try:
            return (
                None if order is None or None in sides or any(isinstance(s, Unknown) for s in sides) else order(*sides)
            )
        except TypeError:
            return None

    def _call(self, node: ast.Call) -> object:  # noqa: PLR0911 - a case a line
        template = node.func if isinstance(node.func, ast.Call) else None  # f<120>(x), of C++
        function = template.func if template else node.func
        if isinstance(function, ast.Call):  # std::less<int>{}(a, b)
            function = function.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if (number := named(name)) is not None:
            return Target(number)
        if name in self.functions and (value := self._made(name, node.args)) is not None:
            return value
        given = [self.value(argument) for argument in (template.args if template else ())]
        values = [*self._passed(node.args), *(self.value(keyword.value) for keyword in node.keywords)]
        if name.endswith("_cast") and values:
            return values[0]
        if name == "integral_constant" and len(values) == 2:
            return values[1]
        if name == "MATCHES":
            return self._matches(node.args[0], values[1])
        if name == "get" and values and given in ([0], [1]):
            return divmod(self.gpu, 10)[int(given == [1])] if isinstance(values[0], Gpu) else None
        if _IS_EXACTLY.fullmatch(name) and any(numbers := [*map(_number, values), *map(_number, given)]):
            return self.gpu in numbers
        owner = self.value(function.value) if isinstance(function, ast.Attribute) else None
        if name == "partial" and template and given:
            return self.value(ast.Call(template.args[0], [*template.args[1:], *node.args], []))
        if name in _FUNCTIONS and len(sides := [*([owner] if name.startswith("__") else ()), *values]) == 2:
            return self._held(_FUNCTIONS[name](), *sides)
        if known := self._known_call(name, owner, values):
            return known[0]
        if name in ("defined", "constexpr", "if") and values:
            return values[-1]
        targets = [value.number for value in (*given, *values) if isinstance(value, Target)]
        return self.gpu in targets if targets else self._about(name, _text(function))

    def _made(self, name: str, given: Sequence[ast.expr]) -> object:
        """Return what a function of one expression makes of its arguments; None if that is not known."""
        function = self.functions[name]
        if len(function.parameters) != len(given) or name in self.resolving:
            return None
        self.resolving.add(name)
        made = self.value(put(function.body, dict(zip(function.parameters, given, strict=True))))
        self.resolving.discard(name)
        return None if isinstance(made, Unknown) else made

    def _passed(self, arguments: Sequence[ast.expr]) -> Iterator[object]:
        """Yield the arguments of a call; a capability with a star is two."""
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                value = self.value(argument.value)
                yield from divmod(self.gpu, 10) if isinstance(value, Gpu) else (Unknown(argument),)
            else:
                yield self.value(argument)

    def _matches(self, text: ast.expr, pattern: object) -> bool | None:
        """Tell whether CMake's MATCHES holds, by the GPU that the pattern asks for, of any variable in the text."""
        value = self.value(text)
        words = re.split(r"[^\w.]+", plain(pattern)) if isinstance(pattern, str) else []
        asked = next((word for word in words if meant(word) is not None), None)
        if asked is None:
            return self._same(value, pattern)
        if isinstance(value, str):
            return meant(asked) in map(meant, re.split(r"[^\w.]+", value))
        parts = text.values if isinstance(text, ast.JoinedStr) else [text]
        sides = [self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
        found = [self._same(side, asked) for side in sides if not isinstance(side, str)]
        return True if True in found else False if False in found else None

    def _known_call(self, name: str, owner: object, values: list[object]) -> tuple[object] | None:  # noqa: PLR0911, PLR0912 - a case a line
        """Return the value of a call of a function that is known; None for any other."""
        first = values[0] if values else None
        if name in _SEARCHES and any(isinstance(value, Gpu) for value in values):
            patterns = [value for value in values if isinstance(value, str)]
            return (_matched(patterns[0], self.gpu),) if len(patterns) == 1 else None
        texts = [meant(plain(value)) for value in (*values, owner) if isinstance(value, str)]
        if name in _COMPARES and any(texts):
            return (int(self.gpu not in texts),)
        if name in (_ASKS | _SEARCHES) and any(texts):
            return (self.gpu in texts,)
        if name in _OF_PLATFORMS:
            asked = _number(first)
            return None if asked is None else (_OF_PLATFORMS[name](self.gpu, asked),)
        if name in ("find", "rfind") and isinstance(owner, str) and isinstance(first, Gpu):
            return (0 if self._has(owner, first) else -1,)
        if name in ("find", "rfind") and any(texts):
            return (0 if self.gpu in texts else -1,)
        if name in ("isdisjoint", "issubset", "issuperset") and len(values) == 1:
            several, one = (owner, first) if name == "issuperset" else (first, owner)
            if type(one) is type(several) is tuple and len(one) == 1:
                held = self._has(several, one[0])
                return None if held is None else (held != (name == "isdisjoint"),)
        if name in ("split", "partition") and isinstance(owner, str) and isinstance(first, str) and first:
            return (tuple(getattr(owner, name)(first)),)
        if name in ("split", "partition") and isinstance(owner, Gpu):  # "sm_120", or "12.0"
            halves = ("sm", owner) if first == "_" else tuple(map(str, divmod(self.gpu, 10)))
            return ((halves[0], first, halves[1]) if name == "partition" else halves,)
        if name in ("abs", "min", "max"):
            numbers = [self._number_of(value) for value in values]
            if numbers and None not in numbers:
                return (abs(numbers[0]) if name == "abs" else {"min": min, "max": max}[name](numbers),)  # type: ignore[arg-type,type-var]
        if name == "divmod" and len(values) == 2 and isinstance(values[1], int) and values[1]:
            number = self._number_of(first)
            return None if number is None else (divmod(number, values[1]),)
        if name == "range" and values and all(isinstance(value, int) and abs(value) < 1 << 20 for value in values):
            steps = range(*values[:3])  # type: ignore[call-overload]
            return (tuple(steps),) if len(steps) <= 200 else None
        if name == "format" and isinstance(owner, str):
            given = [self.gpu if isinstance(value, Gpu) else value for value in values]
            return self._format(owner, given)
        if name == "map" and len(values) == 2 and isinstance(values[1], Gpu):  # map(str, capability)
            return (tuple(map(str, divmod(self.gpu, 10))),)
        if name == "join" and isinstance(owner, str) and isinstance(first, tuple):
            return (owner.join(first),) if all(isinstance(part, str) for part in first) else None
        if name in (
            "int",
            "str",
            "float",
            "bool",
            "tuple",
            "list",
            "set",
            "frozenset",
            "sorted",
            "string",
            "string_view",
            "to_string",
            "Version",
            "parse",
        ):
            return _converted(name, values)
        if _PAIRS.search(name) and isinstance(owner, Unknown | type(None)):
            parts: Sequence[object] = values
            while len(parts) == 1 and isinstance(parts[0], tuple):
                parts = parts[0]
            if len(parts) == 2 and all(type(part) is int for part in parts):
                return (Pair(parts) if "capab" in name.lower() else tuple(parts),)  # type: ignore[arg-type]
        if name in _STRIPS and isinstance(owner, Gpu | str):
            return (owner,)
        return None

    def _format(self, form: str, values: list[object]) -> tuple[object] | None:
        if not all(isinstance(value, int | str) for value in values) or re.search(r"\d{3,}\}", form):
            return None
        try:
            return (form.format(*values),)
        except (ValueError, LookupError, AttributeError):
            return None


def _converted(name: str, values: list[object]) -> tuple[object] | None:
    first = values[0] if values else None
    if isinstance(first, Gpu):
        return (first,)
    if name == "str" and type(first) in (int, str):
        return (str(first),)
    if name in ("int", "float") and isinstance(first, str) and len(first) < 100:
        base = values[1] if len(values) > 1 and isinstance(values[1], int) else 10
        try:
            return (int(first, base) if name == "int" else float(first),)
        except ValueError:
            return None
    if isinstance(first, Unknown | Target) or first is None:
        return None
    return (first,)


def _matched(pattern: str, gpu: int) -> bool | None:
    """Tell whether a regular expression is met by the name of a GPU, in one of its spellings."""
    if len(pattern) > 100:
        return None
    try:
        found = re.compile(pattern)
    except (re.error, OverflowError):
        return None
    return any(found.fullmatch(spelled.format(gpu, gpu // 10, gpu % 10)) for spelled in _SPELLED)


def put(expression: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression, with others in the place of names."""

    class _Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    return _Names().visit(deepcopy(expression))  # type: ignore[no-any-return]


def uses(expression: ast.AST, name: str) -> bool:
    """Tell whether a name is in an expression."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(expression))


def plain(value: str) -> str:
    """Return a text without what a regular expression has around it."""
    return re.sub(r"[\\^$()]|\.\*|\[af\]\??|(?<=\d)[af]\?|(?<=\w)_$", "", value)


def _number(value: object) -> int | None:  # noqa: PLR0911 - a case a line
    """Return the number of the GPU that a value means."""
    if isinstance(value, bool | Unknown):
        return None
    if isinstance(value, Gpu | Target):
        return value.number
    if isinstance(value, int):
        number = _scaled(value)
        return number if 20 <= number < 200 else None  # no number of a GPU: another version
    if isinstance(value, float):
        return round(value * 10) if value < 20 else None
    if isinstance(value, str):
        return meant(value)
    if isinstance(value, tuple) and len(value) == 2 and type(value[0]) is type(value[1]) is int:
        return value[0] * 10 + value[1] if 5 < value[0] < 20 > value[1] * 2 else None
    return None


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (AttributeError, ValueError, RecursionError):
        return ""


Rows = frozenset[int]
"""For what GPUs a condition may hold, each possibility as a set of bits."""

_BIT = {gpu: 1 << at for at, gpu in enumerate(_GPUS)}
_ALL = (1 << len(_GPUS)) - 1


class Conditions:
    """The conditions of a file. ``names``: expressions of the names that have one value."""

    def __init__(self, names: Mapping[str, ast.expr], functions: Mapping[str, Function] | None = None) -> None:
        self.names = names
        self.functions = functions or {}
        self._worlds: dict[tuple[int, int, bool], _World] = {}
        # Each with its node, so that no other one gets its id.
        self._varying: dict[int, tuple[ast.AST, bool]] = {}
        self._leaves: dict[tuple[int, int], tuple[ast.AST, Rows]] = {}
        self._about: dict[str, bool] = {}

    def _world(self, gpu: int, scale: int = 1, choice: bool = False) -> _World:
        key = gpu, scale, choice
        if key not in self._worlds:
            self._worlds[key] = _World(self.names, self.functions, *key)
        return self._worlds[key]

    def knowing(self, names: Mapping[str, ast.expr]) -> "Conditions":
        """Return the conditions of a part of the file, in which these names have these values."""
        return Conditions({**self.names, **names}, self.functions)

    def may_be_named(self, value: ast.expr) -> bool:
        """Tell whether the value of a name matters for the conditions that it is in, and is no test by itself."""
        if self.parts(value):
            return False
        if is_condition(value):
            return self.matters(value)
        made = {self._world(gpu).value(value) for gpu in _GPUS}
        return len(made) > 1 and all(type(one) in (int, float) for one in made)

    def matters(self, node: ast.AST) -> bool:
        """Tell whether a condition is one on the GPU, whatever else it is."""
        return any(not self._of_leaf(leaf, 1) <= {0, _ALL} for leaf in operands(node))

    def value(self, node: ast.AST) -> object:
        """Return the value of an expression that is about no GPU; Unknown of any other."""
        return self._world(0).value(node)

    def parts(self, node: ast.AST, *, alone: bool = False) -> bool:
        """Tell whether a condition may hold for one of SM120 and SM121 alone, so that SM121 is left out.

        ``alone``: that one is SM120, and the number behind 121 does not meet it.
        """
        if not any(self.varies(leaf) for leaf in operands(node)):
            return False
        has_arithmetic = any(isinstance(part, ast.BinOp | ast.Call) for part in ast.walk(node))
        return any(self._parts(node, scale, alone=alone) for scale in ((1, 10) if has_arithmetic else (1,)))

    def parts_below(self, node: ast.expr, around: Sequence[ast.expr]) -> bool:
        """Tell whether a condition parts the two together with the nearest ones around it, and these do not alone.

        What is behind a return, or in the other branch, is for SM120 alone if it is not for the number behind 121:
        ``arch == 121`` in the first branch parts them on purpose.
        """
        nearest = [*around[-6:]]
        within, before = (ast.BoolOp(ast.And(), several) for several in ([*nearest, node], nearest))
        is_other = any(isinstance(one, ast.UnaryOp) and isinstance(one.op, _Other) for one in within.values)
        if not (nearest or is_other) or not self.parts(within, alone=is_other):
            return False
        return not nearest or not self.parts(before, alone=is_other)

    def _parts(self, node: ast.AST, scale: int, *, alone: bool) -> bool:
        known: dict[int, Rows] = {}
        unknown: dict[str, list[int]] = {}
        for leaf in operands(node):
            known[id(leaf)] = rows = self._of_leaf(leaf, scale)
            if rows >= {0, _ALL}:
                unknown.setdefault(ast.dump(leaf), []).append(id(leaf))
        several = [leaves for leaves in unknown.values() if len(leaves) > 1][:_MOST]
        for choices in product((0, _ALL), repeat=len(several)):  # what is there twice is the same both times
            fixed = {leaf: frozenset((row,)) for leaves, row in zip(several, choices, strict=True) for leaf in leaves}
            rows = _rows(node, known | fixed)
            if any(_leaves_out(row) and not (alone and row & (_BIT[_NEXT] | _BIT[121])) for row in rows):
                return True
        return False

    def _of_leaf(self, leaf: ast.expr, scale: int) -> Rows:
        if (id(leaf), scale) not in self._leaves:
            self._leaves[id(leaf), scale] = leaf, self._rows_of(leaf, scale)
        return self._leaves[id(leaf), scale][1]

    def _may_be_about(self, node: ast.AST) -> bool:
        """Tell whether a GPU may be in an expression, by the words in it and in the values of its names."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.names:
                if part.id not in self._about:
                    self._about[part.id] = False  # of a name that is made of itself
                    self._about[part.id] = self._may_be_about(self.names[part.id])
                if self._about[part.id]:
                    return True
            word = getattr(part, "id", "") or getattr(part, "attr", "") or getattr(part, "value", "")
            if isinstance(word, str) and word and (word in self.functions or _is_word_of_gpu(word)):
                return True
        return False

    def _rows_of(self, leaf: ast.expr, scale: int) -> Rows:
        if not self._may_be_about(leaf):
            held = {world.truth(world.value(leaf)) for world in (self._world(120, scale, c) for c in (False, True))}
            return frozenset(_ALL if one else 0 for one in held)
        worlds = ([self._world(gpu, scale, choice) for gpu in _GPUS] for choice in (False, True))
        return frozenset(
            sum(_BIT[world.gpu] for world in of_all if world.truth(world.value(leaf))) for of_all in worlds
        )

    def names_sm121(self, node: ast.AST) -> bool:
        """Tell whether SM121 is in a condition by its number or its name."""
        parts = (
            part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.Name | ast.Attribute | ast.Tuple)
        )
        return any(self.value(part) in (121, 1210, (12, 1), Target(121)) for part in parts)

    def has_gpus(self, node: ast.AST | None) -> bool:
        """Tell whether a display has numbers of GPUs alone."""
        several = self.value(node) if node else None
        numbers = [_number(one) for one in several] if type(several) is tuple else []
        return bool(numbers) and {*numbers} <= ARCHS

    def is_for(self, node: ast.AST, gpu: int) -> bool:
        """Tell whether a condition can hold for a GPU, and does not for all."""
        held = {of: self._world(of, choice=True) for of in _GPUS}
        found = {of: world.truth(world.value(node)) for of, world in held.items()}
        return found[gpu] and not all(found.values())

    def varies(self, node: ast.AST) -> bool:
        """Tell whether it matters to a condition which of SM120 and SM121 it is about."""
        if id(node) not in self._varying:
            self._varying[id(node)] = node, self._may_be_about(node) and self._tells_apart(node)
        return self._varying[id(node)][1]

    def _tells_apart(self, node: ast.AST) -> bool:
        for choice in (False, True):
            for scale in (1, 10):
                one, other = (self._world(gpu, scale, choice) for gpu in (120, 121))
                if one.truth(one.value(node)) != other.truth(other.value(node)):
                    return True
        return False

    def places(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the smallest parts of a condition that part SM120 and SM121, if the whole does."""
        if not self.parts(node):
            return
        inner: list[ast.AST] = []
        if joined := _joined(node):
            inner = [place for value in joined.values for place in self.places(value)]
        elif isinstance(node, ast.UnaryOp):
            inner = [*self.places(node.operand)]
        yield from inner or [node]

    def lists_it_alone(self, node: ast.AST, *, one_is_enough: bool = False) -> bool:
        """Tell whether a display has numbers or names of GPUs alone, SM120 among them and SM121 not.

        A single number is one of a GPU where the display is said to be of GPUs: ``one_is_enough``.
        """
        elements: list[ast.expr] = []
        if isinstance(node, ast.Dict):
            elements = [key for key in node.keys if key]
        elif isinstance(node, ast.Call):  # dict([(100, a), (120, b)])
            pairs = node.args[0] if _called(node) == "dict" and len(node.args) == 1 else None
            several = pairs.elts if isinstance(pairs, ast.List | ast.Tuple) else []
            elements = [pair.elts[0] for pair in several if isinstance(pair, ast.Tuple) and len(pair.elts) == 2]
        elif isinstance(node, ast.List | ast.Set | ast.Tuple):
            elements = node.elts
        values = [self.value(element) for element in elements]
        if isinstance(node, ast.BinOp):
            joined = self.value(node)
            values = list(joined) if type(joined) is tuple else []
        numbers = [_number(value) for value in values]
        is_list = (
            one_is_enough
            or len(numbers) > 1
            or not all(type(v) in (int, float) or (isinstance(v, str) and v[:1].isdigit()) for v in values)
        )
        return is_list and 120 in numbers and 121 not in numbers and {*numbers} <= ARCHS


class _Other(ast.Not):
    """The ``not`` of what is reached where a condition does not hold."""


def other_than(test: ast.expr) -> ast.expr:
    """Return the condition that a test does not hold, of the other branch of it."""
    return ast.UnaryOp(_Other(), test, lineno=getattr(test, "lineno", 0), col_offset=0)


class _Joined(NamedTuple):
    op: ast.boolop
    values: Sequence[ast.expr]


def _joined(node: ast.AST) -> _Joined | None:
    """Return the conditions that a node joins: by ``and``, by ``&``, in ``all([...])``; None if it is none of these."""
    if isinstance(node, ast.BoolOp):
        return _Joined(node.op, node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        sides = [node.left, node.right]
        op: ast.boolop = ast.And() if isinstance(node.op, ast.BitAnd) else ast.Or()
        return _Joined(op, sides) if any(map(is_condition, sides)) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        several = node.args[0]
        op = ast.And() if node.func.id == "all" else ast.Or()
        if node.func.id in ("all", "any") and isinstance(several, ast.List | ast.Tuple) and several.elts:
            return _Joined(op, several.elts)
    return None


def is_condition(node: ast.AST) -> bool:
    """Tell whether an expression is a comparison, or joins or negates conditions."""
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare) or _called(node) in _FUNCTIONS or _joined(node) is not None


def _called(node: ast.AST) -> str:
    """Return the last part of the name of what a call calls, such as ``less`` in ``std::less<int>{}(a, b)``."""
    function = node.func if isinstance(node, ast.Call) else None
    while isinstance(function, ast.Call):
        is_partial = _called(function) == "partial" and function.args
        function = function.args[0] if is_partial else function.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def operands(test: ast.AST) -> Iterator[ast.expr]:
    """Yield the parts of a condition that are no ``and``, ``or`` or ``not``."""
    if joined := _joined(test):
        for value in joined.values:
            yield from operands(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from operands(test.operand)
    else:
        yield test  # type: ignore[misc]


def _rows(test: ast.AST, known: Mapping[int, Rows]) -> Rows:
    """Return for what GPUs a condition may hold, by that of its operands."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return frozenset(_ALL & ~row for row in _rows(test.operand, known))
    if (joined := _joined(test)) is None:
        return known[id(test)]
    join = and_ if isinstance(joined.op, ast.And) else or_
    found = _rows(joined.values[0], known)
    for value in joined.values[1:]:
        found = frozenset(join(a, b) for a in found for b in _rows(value, known))
    return found


def is_nothing(value: ast.expr) -> bool:
    """Tell whether a value is what a function returns that does nothing."""
    name = getattr(value, "id", "")
    return name in ("false", "nullptr", "NULL") or (isinstance(value, ast.Constant) and not value.value)


class Asked(NamedTuple):
    """A condition in an expression, and those of whose branches it is in. ``has_other``: where it holds is nothing."""

    test: ast.expr
    around: Sequence[ast.expr]
    has_other: bool = False


def conditions_in(tree: ast.AST, asked: Callable[[str], object], around: Sequence[ast.expr] = ()) -> Iterator[Asked]:
    """Yield each condition of an expression, the outermost first. ``asked``: whether a function's argument is one."""
    if is_condition(tree):
        yield Asked(tree, around)  # type: ignore[arg-type]
        for leaf in leaves(tree):
            for child in ast.iter_child_nodes(leaf):
                yield from conditions_in(child, asked, around)
        return
    if isinstance(tree, ast.IfExp):
        has_other = is_nothing(tree.body)
        yield from (one._replace(has_other=has_other) for one in _asked(tree.test, asked, around))
        yield from conditions_in(tree.body, asked, (*around, tree.test))
        yield from conditions_in(tree.orelse, asked, (*around, other_than(tree.test)))
        return
    if isinstance(tree, ast.Call) and tree.args and asked(getattr(tree.func, "attr", getattr(tree.func, "id", ""))):
        yield from _asked(tree.args[0], asked, around)
        for argument in tree.args[1:]:
            yield from conditions_in(argument, asked, around)
        return
    for child in ast.iter_child_nodes(tree):
        yield from conditions_in(child, asked, around)


def _asked(test: ast.expr, asked: Callable[[str], object], around: Sequence[ast.expr]) -> Iterator[Asked]:
    inner = list(conditions_in(test, asked, around))
    yield from inner if any(one.test is test for one in inner) else [Asked(test, around), *inner]


def leaves(test: ast.AST) -> Iterator[ast.expr]:
    """Yield the operands of a condition that are no conditions."""
    if joined := _joined(test):
        parts: Sequence[ast.expr] = joined.values
    elif isinstance(test, ast.Compare):
        parts = (test.left, *test.comparators)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        parts = (test.operand,)
    else:
        yield test  # type: ignore[misc]
        return
    for part in parts:
        yield from leaves(part)


def _leaves_out(row: int) -> bool:
    """Tell whether a condition leaves SM121 out, by the GPUs for which it holds, or SM120 alone does not meet it."""
    held = {gpu: bool(row & bit) for gpu, bit in _BIT.items()}
    if held[120] and not held[121]:  # but for a test of the minor number alone
        return not all(held[gpu] == (gpu % 10 == 0) for gpu in _OTHERS)
    return held[121] and not held[120] and sum(held[gpu] for gpu in _OTHERS if gpu < 120) > 3
