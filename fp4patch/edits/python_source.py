"""Python modules, and expressions in them, compared as syntax trees.

Python's own parser finds the expressions, in f-strings too, and proves the result. LibCST replaces them, since it keeps
each byte beside them; it takes a while to load, and is loaded for a file that is changed alone.
"""

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import StringIO
from itertools import pairwise
from typing import Any, NamedTuple

from fp4patch.core.lex_error import NotAsMeant, Overlap

BOM = "\ufeff"


def read_expression(text: str) -> ast.expr:
    """Return the expression that a text is, in as many lines as it likes. SyntaxError or ValueError: it is none."""
    return ast.parse(f"({text}\n)", mode="eval").body


def meaning(expression: str) -> str:
    """Return the syntax tree of an expression as text."""
    return ast.dump(read_expression(expression))


@dataclass(frozen=True)
class Module:
    """A module's text, and its syntax tree. SyntaxError: it is none."""

    text: str

    def __post_init__(self) -> None:
        """Read it."""
        _ = self.tree

    @property
    def code(self) -> str:
        """The text without the mark of its byte order."""
        return self.text.removeprefix(BOM)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return _parsed(self.code)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in it; dotted ones part by part."""
        return frozenset(name for node in self.nodes("") for name in _identifiers(node))

    @cached_property
    def _nodes(self) -> dict[str, tuple[ast.AST, ...]]:
        return {"": tuple(ast.walk(self.tree))}

    def nodes(self, within: str) -> tuple[ast.AST, ...]:
        """Return all nodes in the functions of a name, or of the module without one, each once."""
        if within not in self._nodes:
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            functions = (node for node in self.nodes("") if isinstance(node, kinds) and node.name == within)
            found = {id(node): node for function in functions for node in ast.walk(function)}
            self._nodes[within] = tuple(found.values())
        return self._nodes[within]

    def same(self, within: str, pattern: str) -> list[ast.expr]:
        """Return the expressions in such functions that mean the same as a pattern."""
        wanted = read_expression(pattern)
        kind, dump = type(wanted), ast.dump(wanted)
        return [node for node in self.nodes(within) if isinstance(node, kind) and ast.dump(node) == dump]


@lru_cache(maxsize=16)
def read(text: str) -> Module:
    """Read a module, once for all that ask for it one after the other. SyntaxError or ValueError: it is none."""
    return Module(text)


class Substitution(NamedTuple):
    """An expression to be put in the place of each that means ``find``, in the functions ``within`` or everywhere."""

    find: str
    replace: str
    within: str
    lines: tuple[int, ...]
    """The lines of the places."""


def spliced(module: Module, cuts: Iterable[Substitution]) -> Module:
    """Return the module with expressions replaced. Overlap: two are in the place of one, or one in another. NotAsMeant:
    the result has another syntax tree than the old one with the new expressions."""
    substitutions = list(cuts)
    rows = [*StringIO(module.code, newline="")]
    lines = [line for substitution in substitutions for line in substitution.lines]
    for first, last in reversed(_statements(module.tree, lines, len(rows))):
        text = "".join(rows[first - 1 : last])
        for substitution in substitutions:
            text = _replaced(text, substitution)
        rows[first - 1 : last] = [text]
    meant = ast.dump(_substituted(Module(module.code), substitutions))
    try:
        result = Module(BOM * module.text.startswith(BOM) + "".join(rows))
    except SyntaxError as error:
        raise NotAsMeant(error.msg) from error
    if ast.dump(result.tree) != meant:
        raise NotAsMeant("another syntax tree")
    return result


def _substituted(module: Module, substitutions: Sequence[Substitution]) -> ast.AST:
    """Return the module's tree with the new expressions; it is changed. Overlap: see :func:`spliced`."""
    becomes: dict[int, ast.expr] = {}
    for substitution in substitutions:
        for node in module.same(substitution.within, substitution.find):
            if id(node) in becomes:
                raise Overlap("two changes of one place")
            becomes[id(node)] = read_expression(substitution.replace)
    return _Put(becomes).visit(module.tree)  # type: ignore[no-any-return]


class _Put(ast.NodeTransformer):
    """Put new expressions in the place of old ones, which are given by their ids."""

    def __init__(self, becomes: Mapping[int, ast.expr]) -> None:
        self._becomes = becomes

    def visit(self, node: ast.AST) -> Any:
        new = self._becomes.get(id(node))
        if new is None:
            return self.generic_visit(node)
        if any(id(part) in self._becomes for part in ast.walk(node) if part is not node):
            raise Overlap("one change inside of another")
        return new


def _statements(tree: ast.Module, lines: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Return first and last line of each statement of the module that has one of some lines: LibCST takes long for
    a whole module. All lines, where two statements share one."""
    heads = [[part.lineno, *(d.lineno for d in getattr(part, "decorator_list", ()))] for part in tree.body]
    spans = [(min(head), part.end_lineno or 0) for head, part in zip(heads, tree.body, strict=True)]
    if any(after[0] <= before[1] for before, after in pairwise(spans)):
        return [(1, rows)]
    return [(first, last) for first, last in spans if any(first <= line <= last for line in lines)]


def _replaced(text: str, substitution: Substitution) -> str:
    """Return the text with each expression replaced by LibCST."""
    import libcst as cst  # noqa: PLC0415 - see above

    find, replace, within, _ = substitution
    wanted = meaning(find)
    kind = type(cst.parse_expression(find))
    new = cst.parse_expression(replace)

    class Put(cst.CSTTransformer):
        """Put the new expression in the place of each that means the same as the old one."""

        inside = 0 if within else 1

        def on_visit(self, node: cst.CSTNode) -> bool:
            self.inside += isinstance(node, cst.FunctionDef) and node.name.value == within
            return True

        def on_leave(self, original_node: Any, updated_node: Any) -> Any:
            inside = self.inside
            self.inside -= isinstance(original_node, cst.FunctionDef) and original_node.name.value == within
            if not (inside and isinstance(original_node, kind)):
                return updated_node
            if meaning(cst.Module([]).code_for_node(original_node)) != wanted:
                return updated_node
            # Parentheses of the old one may hold lines together: they stay, around those of the new one.
            lpar, rpar = (*updated_node.lpar, *new.lpar), (*new.rpar, *updated_node.rpar)
            return new.with_changes(lpar=lpar, rpar=rpar)

    module = cst.parse_module(text).visit(Put())
    # LibCST overlooks the last newline behind a comment that ends with a backslash.
    return module.with_changes(has_trailing_newline=text.endswith(("\n", "\r"))).code


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself has; dotted ones part by part."""
    if not isinstance(node, ast.Constant):
        for _, value in ast.iter_fields(node):
            for name in value if isinstance(value, list) else (value,):
                if isinstance(name, str):
                    yield from name.split(".")


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # upstream's strings are upstream's business
        return ast.parse(code)
