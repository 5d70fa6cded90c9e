"""Draw the layout of the package from its imports: docs/images/layout.svg.

Parts are boxes with the first sentence of their docstring. An arrow means "imports at run time"; an arrow that other
arrows imply is left out.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Set
from graphlib import TopologicalSorter
from pathlib import Path

from fp4patch.commands.templates import render

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fp4patch"
PICTURE = ROOT / "docs/images/layout.svg"

# Pixels: a box, the room between two boxes, and between two rows.
WIDTH = 230
HEIGHT = 84
GAP = 20
DROP = 46


def module_imports(path: Path) -> set[str]:
    """Return what a module of the package imports of it when it runs, as dotted names below ``fp4patch``.

    Imports for type checkers alone do not count. A name can be that of a module or of something in a module.
    """
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}: a relative import")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        pending += ast.iter_child_nodes(node)
    return {name.removeprefix("fp4patch.") for name in found if name.startswith("fp4patch.")}


def part_imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Return for each part the other parts that its modules import."""
    parts = {path.parent.name for path in package.glob("*/__init__.py")}
    return {
        part: {name.partition(".")[0] for path in (package / part).rglob("*.py") for name in module_imports(path)}
        & (parts - {part})
        for part in sorted(parts)
    }


def _implied(imports: Mapping[str, Set[str]], one: str, other: str) -> bool:
    """Return whether another import of ``one`` leads to ``other`` as well."""
    return any(other in imports[via] or _implied(imports, via, other) for via in imports[one] if via != other)


def picture() -> str:
    """Return the layout as SVG."""
    imports = part_imports()
    depth: dict[str, int] = {}
    for part in TopologicalSorter(imports).static_order():
        depth[part] = 1 + max((depth[other] for other in imports[part]), default=-1)
    for part in sorted(depth, key=lambda p: -depth[p]):  # as high as what imports it allows
        users = [depth[user] for user in imports if part in imports[user]]
        depth[part] = min(users) - 1 if users else depth[part]
    drawn = [(one, other) for one in imports for other in sorted(imports[one]) if not _implied(imports, one, other)]
    long = [one for one, other in drawn if depth[one] - depth[other] > 1]
    rows = []
    for row in sorted(set(depth.values()), reverse=True):
        parts = sorted(part for part in depth if depth[part] == row)
        outer = [part for part in parts if part in long]  # at the ends, where nothing is below them
        rows.append([*outer[::2], *(part for part in parts if part not in outer), *outer[1::2]])
    width = max(map(len, rows)) * (WIDTH + GAP) + GAP
    boxes = {}
    for number, names in enumerate(rows):
        left = (width - len(names) * (WIDTH + GAP) + GAP) // 2
        for place, part in enumerate(names):
            text = (ast.get_docstring(ast.parse((PACKAGE / part / "__init__.py").read_text())) or "").partition("\n")[0]
            boxes[part] = (left + place * (WIDTH + GAP), GAP + number * (HEIGHT + DROP), textwrap.wrap(text, 36)[:4])
    paths = [_path(boxes[one], boxes[other], straight=depth[one] - depth[other] == 1) for one, other in drawn]
    return render(
        "layout.svg.j2",
        Path(__file__).parent,
        boxes=boxes,
        paths=paths,
        box=(WIDTH, HEIGHT),
        width=width,
        height=len(rows) * (HEIGHT + DROP),
    )


def _path(start: tuple[int, int, list[str]], end: tuple[int, int, list[str]], *, straight: bool) -> str:
    """Return the line from below one box to the top of another in the next row, else to the side of it."""
    x, y = start[0] + WIDTH // 2, start[1] + HEIGHT
    if straight:
        to = end[0] + WIDTH // 2
        return f"M{x} {y}C{x} {y + 30} {to} {end[1] - 30} {to} {end[1]}"
    side = end[0] if x < end[0] else end[0] + WIDTH
    return f"M{x} {y}V{end[1] + HEIGHT // 2}H{side}"


def main(_arguments: list[str]) -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")
