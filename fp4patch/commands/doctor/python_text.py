"""A tree's own Python, evaluated from its text: nothing of it is imported or run.

Enough of the language for code that chooses compiler flags: literals, names, conditions, loops over what is known,
functions, plain classes, ``raise`` and ``try``. What stands for the rest of the world is given by name. A value that
comes from anywhere else is UNKNOWN, and stays so through whatever is done with it; where one decides which way the code
goes, or could change what it is handed, evaluation stops with NotKnown and the line. Two things are taken for granted:
what is outside succeeds, and a function that cannot be read through changes nothing but what it is handed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fp4patch.commands.doctor.python_frame import Frame, Return
from fp4patch.commands.doctor.python_values import (
    UNKNOWN,
    Class,
    Function,
    Module,
    NotKnown,
    Raised,
    World,
    bindings,
    is_static,
    undecorated,
)

STEPS = 200_000
"""Expressions and statements of one evaluation; FlashInfer's longest takes some two thousand."""
DEPTH = 40
"""Calls within calls."""

_BUILTINS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f for f in (int, str, bool, len, sorted, list, tuple, set, any, all, range)
}


class Package:
    """The Python files of one package, each parsed when it is first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._parsed: dict[str, Module | None] = {}

    def module(self, path: str) -> Module | None:
        """Return the module at ``jit/core.py`` or, of a directory, at ``jit/__init__.py``; None if there is none."""
        if path not in self._parsed:
            self._parsed[path] = self._parse(path)
        return self._parsed[path]

    def _parse(self, path: str) -> Module | None:
        file = next((p for p in (self.root / path, self.root / path[:-3] / "__init__.py") if p.is_file()), None)
        if file is None:
            return None
        where = file.relative_to(self.root)
        try:
            return Module(where.as_posix(), bindings(ast.parse(file.read_bytes())))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            raise NotKnown(f"{where.as_posix()} cannot be read: {error}") from None

    def call(self, path: str, function: str, arguments: Sequence[Any], world: World) -> Any:
        """Return the value of a function of a file; raise NotKnown or Raised."""
        module = self.module(path)
        if module is None:
            raise NotKnown(f"there is no {path}")
        evaluation = Evaluation(self, world)
        try:
            found = evaluation.of_module(module, function, 0)
            if isinstance(found, Function):
                return evaluation.call(found, arguments, {}, 0)
        except RecursionError:
            raise NotKnown(f"{path}: {function} is nested too deep") from None
        raise NotKnown(f"{path} defines no function {function}")


class Evaluation:
    """One question: each global name is evaluated once, and all steps are counted."""

    def __init__(self, package: Package, world: World) -> None:
        self.package = package
        self.world = world
        self._globals: dict[tuple[str, str], Any] = {}
        self._left = STEPS

    # Names.

    def of_module(self, module: Module, name: str, depth: int) -> Any:
        """Return the value of a global name, evaluated once."""
        key = (module.path, name)
        if key not in self._globals:
            self._globals[key] = UNKNOWN  # for a name that needs itself
            self._globals[key] = self._global(module, name, depth)
        return self._globals[key]

    def _global(self, module: Module, name: str, depth: int) -> Any:
        given = self.world.functions
        if name in given or name not in module.bindings:
            return given.get(name, _BUILTINS.get(name, UNKNOWN))
        match statement := module.bindings[name]:
            case ast.FunctionDef() if undecorated(statement):
                return Function(statement, module)
            case ast.ClassDef(bases=[], keywords=[], decorator_list=[]):
                return Class(statement, module)
            case (
                ast.Assign(targets=[ast.Name()], value=value)
                | ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)
            ):
                return Frame(self, module, {}, depth).value(value)
            case ast.Import() | ast.ImportFrom():
                return self.imported(module, statement, name, depth)
            case _:
                return UNKNOWN

    def imported(self, module: Module, statement: ast.Import | ast.ImportFrom, name: str, depth: int) -> Any:
        """Return the value that an ``import`` binds to a name: of the world, or a global of another file of the
        package."""
        alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
        if isinstance(statement, ast.Import):
            return self.world.modules.get(alias.name if alias.asname else name, UNKNOWN)
        if alias.name in self.world.functions:
            return self.world.functions[alias.name]
        source = self._file(module, statement)
        if source is None or depth > DEPTH:
            return UNKNOWN
        return self.of_module(source, alias.name, depth + 1)

    def _file(self, module: Module, statement: ast.ImportFrom) -> Module | None:
        parts = statement.module.split(".") if statement.module else []
        if statement.level:
            parents = module.path.split("/")[:-1]
            if statement.level - 1 > len(parents):
                return None
            parts = parents[: len(parents) - statement.level + 1] + parts
        elif parts[0] == self.package.root.name:
            parts = parts[1:]
        else:
            return None
        return self.package.module("/".join(parts) + ".py") if parts else None

    # Calls.

    def step(self, frame: Frame, node: ast.AST) -> None:
        """Count one; NotKnown after the last."""
        self._left -= 1
        if self._left < 0:
            raise frame.lost(node, f"more than {STEPS:,} steps")

    def call(self, function: Function, arguments: Sequence[Any], named: Mapping[str, Any], depth: int) -> Any:
        """Call a function of the tree."""
        bound = self._bind(function, arguments, named, depth)
        frame = Frame(self, function.module, bound, depth + 1)
        if depth > DEPTH:
            raise frame.lost(function.node, "calls too deep")
        try:
            frame.run(function.node.body)
        except Return as done:
            return done.value
        return None

    def _bind(self, function: Function, given: Sequence[Any], named: Mapping[str, Any], depth: int) -> dict[str, Any]:
        spec = function.node.args
        frame = Frame(self, function.module, {}, depth)
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        if function.instance and not is_static(function.node):
            given = (function.instance, *given)
        if spec.vararg or spec.kwarg or len(given) > len(names):
            raise frame.lost(function.node, f"{function.node.name} takes arguments in another way")
        bound = dict(zip(names, given, strict=False)) | dict(named)
        defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
        defaults |= {a.arg: value for a, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value}
        for name in (*names, *(a.arg for a in spec.kwonlyargs)):
            if name not in bound:
                if name not in defaults:
                    raise Raised("TypeError", f"{function.node.name}() lacks {name!r}")
                bound[name] = frame.value(defaults[name])
        return bound
