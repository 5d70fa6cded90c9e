"""Write the table of axes in docs/doctor.md from the code: each axis with the sentences of its answers.

    python -m tools.regenerate axes

It reads the calls that make observations in the modules that answer; values in a sentence are printed as an ellipsis.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from fp4patch.binaries.findings import ANSWERS, Axis, Level

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "doctor.md"
MODULES = (
    "binaries/answer.py",
    "doctor/configured.py",
    "doctor/gpus.py",
    "doctor/known_defects.py",
    "doctor/packages.py",
    "doctor/projects.py",
    "doctor/tree_answers.py",
)
BEGIN, END = "<!-- axes, by `python -m tools.regenerate axes` -->\n", "<!-- end of axes -->\n"


FP4 = [Axis.CONVERTS, Axis.MULTIPLIES]
"""What an axis may be that is a value."""


class Function:
    """A function, and what each of its names is at a place."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.nodes = list(ast.walk(function))
        self.above = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.begun: dict[str, list[ast.expr]] = {"Observation": []}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.value.args) > 1:
                made, given = node.value, node.value.args
                if ast.unparse(made.func) == "partial" and ast.unparse(given[0]) == "Observation":
                    self.begun[ast.unparse(node.targets[0])] = given[1:]

    def observations(self) -> Iterator[tuple[Axis, Level, str]]:
        """Yield axis, level and sentence of each observation that it states."""
        for node in self.nodes:
            match node:
                case ast.Call(func=ast.Name(id=name), args=args) if name in self.begun:
                    axis, level, sentence = [*self.begun[name], *args, *[ast.Constant("")] * 3][:3]
                    axes = [Axis[one] for one in _attributes(axis) if one in Axis.__members__] or FP4
                    levels = [Level[one] for one in _attributes(level) if one in Level.__members__]
                    for text in filter(None, self.texts(sentence, node)):
                        yield from ((one, at, text) for one in axes for at in levels)

    def texts(self, node: ast.expr, use: ast.AST) -> Iterator[str]:
        """Yield the texts that an expression may be where it is used."""
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            case ast.IfExp(body=body, orelse=other):
                yield from (*self.texts(body, use), *self.texts(other, use))
            case ast.BoolOp(values=values):
                yield from (text for value in values for text in self.texts(value, use))
            case ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=str(text))]):
                yield f"… {text}s"
            case ast.Name(id=name):
                for assigned in self.assignments(name, use):
                    yield from self.texts(assigned.value, assigned)

    def assignments(self, name: str, use: ast.AST) -> Iterator[ast.Assign]:
        """Yield the assignments of a name before a place, from the last one back to one that certainly runs."""
        around = {use}
        while use in self.above:
            use = self.above[use]
            around.add(use)
        blocks = {id(one) for node in around for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)}
        line = min(node.lineno for node in around if isinstance(node, ast.stmt) and not isinstance(node, _BLOCKS))
        found = [node for node in self.nodes if isinstance(node, ast.Assign) and node.lineno < line]
        for node in sorted(found, key=lambda one: -one.lineno):
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
                yield node
                above = self.above[node]
                same_branch = not isinstance(above, ast.If) or _holds(above, node, around)
                if id(node) in blocks and same_branch:
                    return


_BLOCKS = (ast.FunctionDef, ast.If, ast.For, ast.With)


def _holds(block: ast.If, node: ast.stmt, around: set[ast.AST]) -> bool:
    """Return whether the branch of a condition that has a statement is the one of the place."""
    branch = block.body if node in block.body else block.orelse
    return any(one in around for one in branch)


def _attributes(node: ast.expr) -> list[str]:
    return [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]


def table() -> str:
    """Return the table."""
    found: dict[tuple[Axis, Level], dict[str, None]] = {}
    for module in MODULES:
        tree = ast.parse((ROOT / "fp4patch" / module).read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for axis, level, sentence in Function(function).observations():
                found.setdefault((axis, level), {})[sentence] = None
    lines = ["| axis | answer | because |", "|---|---|---|"]
    for axis in Axis:
        for level, answer in ANSWERS.items():
            if sentences := found.get((axis, level)):
                lines.append(f"| {axis} | {answer} | {'; '.join(sorted(sentences))} |")
    return "\n".join(lines) + "\n"


def main(_: list[str]) -> None:
    """Write the page."""
    head, _begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}", encoding="utf-8")
