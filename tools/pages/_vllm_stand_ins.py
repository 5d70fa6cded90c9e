"""Execute functions of a vLLM's source with stand-ins: a GPU of SM12x, and every library that they ask for present."""

import __future__

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

CAPABILITIES = ((12, 0), (12, 1))
_FLAGS = __future__.annotations.compiler_flag


class Capability(NamedTuple):
    """Stand in for vLLM's ``DeviceCapability``."""

    major: int
    minor: int

    def to_int(self) -> int:
        """Return 121 for 12.1."""
        return self.major * 10 + self.minor


class Gpu:
    """Stand in for vLLM's ``current_platform`` on a GPU of this capability."""

    _enum: object = None

    def __init__(self, capability: tuple[int, int]) -> None:
        """Keep the capability."""
        self.capability = Capability(*capability)

    def is_cuda(self) -> bool:
        """Return true, as on every GPU of NVIDIA."""
        return True

    is_cuda_alike = is_cuda

    def get_device_capability(self) -> Capability:
        """Return the capability."""
        return self.capability

    def is_device_capability(self, asked: tuple[int, int] | int) -> bool:
        """Return whether the GPU has exactly this capability: (12, 1) or 121."""
        return self.capability == (divmod(asked, 10) if isinstance(asked, int) else asked)

    def is_device_capability_family(self, asked: int) -> bool:
        """Return whether the GPU is of the family, such as 120."""
        return self.capability[0] == asked // 10

    def has_device_capability(self, asked: tuple[int, int] | int) -> bool:
        """Return whether the GPU has at least this capability."""
        return self.capability >= (divmod(asked, 10) if isinstance(asked, int) else asked)


class Unset:
    """Stand in for vLLM's ``envs``: no variable is set."""

    def __getattr__(self, name: str) -> None:
        """Return nothing, which is false."""


class Present(dict[str, Any]):
    """Names of a module's namespace: what is not set is a library that has all that it is asked for.

    ``absent`` are predicates that answer no, and ``asked`` those that were asked and answered yes.
    """

    def __init__(self, **names: object) -> None:
        """Keep what is set. An import, too, gives these names."""
        super().__init__(names)
        self.absent: set[str] = set()
        self.asked: list[str] = []
        self["__builtins__"] = {**vars(builtins), "__import__": lambda *_, **__: _Module(self)}

    def __missing__(self, name: str) -> object:
        """Return an object that is true and that returns such an object when called; the same for the same name."""
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name] = stand_in = _true(side_effect=lambda *_, **__: self._answer(name))
        return stand_in

    def _answer(self, name: str) -> object:
        if name in self.absent:
            return False
        self.asked.append(name)
        return _true()


def _true(**options: object) -> MagicMock:
    """Return an object that is true and has everything; not a collection, which would pass for an empty one."""
    stand_in = MagicMock(**options)
    stand_in.__iter__.side_effect = TypeError("a stand-in is no collection: what makes it is not evaluated")
    return stand_in


class _Module:
    """Stand in for an imported module: it has every name."""

    def __init__(self, names: Present) -> None:
        self._names = names

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._names[name]


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a file and the methods of its classes, with the name of the class."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield from ((node.name, item) for item in node.body if isinstance(item, ast.FunctionDef))
        elif isinstance(node, ast.Module):
            yield from (("", item) for item in node.body if isinstance(item, ast.FunctionDef))


def last_name(expression: ast.expr) -> str:
    """Return ``C`` for ``a.b.C``."""
    return ast.unparse(expression).rpartition(".")[2]


def define(names: Present, path: Path, *statements: ast.stmt) -> None:
    """Execute statements of a file: functions without their decorators."""
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            statement.decorator_list = []
        module = ast.Module([statement], [])
        exec(compile(module, str(path), "exec", _FLAGS), names)  # noqa: S102 - the code of a pinned archive


def call(names: Present, path: Path, function: ast.FunctionDef, *arguments: object) -> Any:
    """Return the answer of a function of a file. A class method gets nothing for its class."""
    is_of_class = any(last_name(part) == "classmethod" for part in function.decorator_list)
    define(names, path, function)
    return names[function.name](*([None] if is_of_class else []), *arguments)


def alike(answers: list[Any], about: object) -> Any:
    """Return the answer for both capabilities. SystemExit if they differ."""
    if any(answer != answers[0] for answer in answers):
        message = f"{about}: other answers for {CAPABILITIES}: the table needs a column for each"
        raise SystemExit(message)
    return answers[0]
