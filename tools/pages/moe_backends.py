"""Read from each release of vLLM its NVFP4 backends on SM12x: for experts, dense layers and the KV cache.

    python -m tools.regenerate moe-backends TREE...

It replaces ``records/backends.json``, which doctor reads, and the tables of docs/moe-backends.md. The order for experts
is the list in ``select_nvfp4_moe_backend``; a backend accepts the GPU if ``_supports_current_device`` of its kernels
says so. Upstream's functions are executed with stand-ins: a GPU of capability 12.0 or 12.1, and every library that they
ask for present. Dense layers and the cache have modules of their own.
"""

import ast
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.doctor.model import RECORD
from tools.pages import _dense_backends, _kv_cache
from tools.pages._made_part import write
from tools.pages._vllm_stand_ins import CAPABILITIES, Gpu, Present, alike, call, functions, last_name

PAGE = Path(__file__).parents[2] / "docs/moe-backends.md"
LAYERS = "vllm/model_executor/layers/fused_moe"
ACTIVATIONS = ("4 bits", "16 bits")


class Row(TypedDict):
    """Releases that have the same cells in a table."""

    first: str
    last: str
    cells: list[str]


def order(oracle: Path) -> list[str]:
    """Return the backends in the order in which they are tried."""
    select = next(item for _, item in functions(oracle) if item.name == "select_nvfp4_moe_backend")
    lists = [
        node.value for node in ast.walk(select) if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    ]
    return [item.attr for item in lists[0].elts if isinstance(item, ast.Attribute)]


def kernels(oracle: Path) -> dict[str, list[str]]:
    """Return for each backend the names of its kernels' classes."""
    choose = next(item for _, item in functions(oracle) if item.name == "backend_to_kernel_cls")
    classes = {}
    for branch in ast.walk(choose):
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Compare):
            (backend,) = branch.test.comparators
            returned = next(item for item in branch.body if isinstance(item, ast.Return)).value
            names = returned.elts if isinstance(returned, ast.List) else [returned]
            classes[last_name(backend)] = [item.id for item in names if isinstance(item, ast.Name)]
    return classes


def requested(oracle: Path) -> dict[str, str]:
    """Return for each backend the value of ``--moe-backend`` that asks for it."""
    mapped = next(item for _, item in functions(oracle) if item.name == "map_nvfp4_backend")
    table = next(node for node in ast.walk(mapped) if isinstance(node, ast.Dict))
    return {last_name(value): ast.literal_eval(key) for key, value in zip(table.keys, table.values, strict=True) if key}


def executed(tree: Path, kernel: str, method: str, names: Present, *arguments: object) -> Any:
    """Return the answer of a method of the kernel's class, or of the nearest of its bases; None if none has it."""
    for path in (tree / LAYERS).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(rf"^class {kernel}\b", text, re.MULTILINE):
            continue
        (owner,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == kernel)
        for function in owner.body:
            if isinstance(function, ast.FunctionDef) and function.name == method:
                return bool(call(names, path, function, *arguments))
        bases = [last_name(base) for base in owner.bases]
        answers = (executed(tree, base, method, names, *arguments) for base in bases)
        return next((answer for answer in answers if answer is not None), None)
    return None


def accepts(tree: Path, kernel: str, activations: str, capability: tuple[int, int]) -> bool:
    """Return whether a kernel takes NVFP4 weights with these activations on a GPU of this capability."""
    names = Present(current_platform=Gpu(capability))
    keys = names["kNvfp4Static"], None if activations == "16 bits" else names["kNvfp4Dynamic"]
    scheme = executed(tree, kernel, "_supports_quant_scheme", names, *keys)
    device = executed(tree, kernel, "_supports_current_device", names)
    if scheme is None or device is None:
        message = f"{tree}: {kernel} says nothing about GPUs or about formats"
        raise SystemExit(message)
    return bool(scheme and device)


def row(tree: Path) -> list[str]:
    """Return the backends tried for activations of 4 bits, those for 16 bits, and those that only an option chooses."""
    oracle = tree / LAYERS / "oracle/nvfp4.py"
    by_backend = kernels(oracle)
    options = requested(oracle)
    listed = order(oracle)

    def works(backend: str, activations: str) -> bool:
        answers = [any(accepts(tree, name, activations, gpu) for name in by_backend[backend]) for gpu in CAPABILITIES]
        return bool(alike(answers, f"{tree}: {backend}"))

    cells = [[backend for backend in listed if works(backend, activations)] for activations in ACTIVATIONS]
    others = [item for item in by_backend if item not in listed and any(works(item, kind) for kind in ACTIVATIONS)]
    return [", ".join(f"`{options.get(item, item.lower())}`" for item in items) or "-" for items in (*cells, others)]


def rows(row: Callable[[Path], list[str]], trees: Sequence[tuple[str, Path]]) -> list[Row]:
    """Return the rows of releases with their trees, those of equal content as one."""
    found: list[Row] = []
    for cells, group in itertools.groupby(((version, row(root)) for version, root in trees), key=lambda item: item[1]):
        releases = [version for version, _ in group]
        found.append({"first": releases[0], "last": releases[-1], "cells": cells})
    return found


def table(heads: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the rows as a table of the page."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        span = row["first"] if row["first"] == row["last"] else f"{row['first']} to {row['last']}"
        lines.append(f"| {span} | {' | '.join(row['cells'])} |")
    return "\n".join(lines) + "\n"


def record(tables: Mapping[str, Sequence[Row]]) -> str:
    """Return the record of all tables, a row a line."""
    parts = []
    for mark, found in tables.items():
        lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in found)
        parts.append(f" {json.dumps(mark)}: [\n{lines}\n ]")
    return '{"schema": 1, "tables": {\n' + ",\n".join(parts) + "\n}}\n"


def has_list(tree: Path) -> bool:
    """Return whether a release chooses the backend of experts from a list that an option can change."""
    oracle = tree / LAYERS / "oracle/nvfp4.py"
    return oracle.is_file() and any(item.name == "map_nvfp4_backend" for _, item in functions(oracle))


_ACTIVATIONS = ("activations of 4 bits", "activations of 16 bits")
TABLES: dict[str, tuple[tuple[str, ...], Callable[[Path], list[str]], Callable[[Path], bool]]] = {
    "moe-backends": (("vLLM", *_ACTIVATIONS, "only by option"), row, has_list),
    "moe-backends, dense": (("vLLM", *_ACTIVATIONS), _dense_backends.row, Path.is_dir),
    "moe-backends, KV cache": (("vLLM", "`--kv-cache-dtype nvfp4`", "filled by"), _kv_cache.row, Path.is_dir),
}
"""Of each table of the page its heads, what makes a row of a tree, and whether the tree has one."""


def main(arguments: list[str]) -> None:
    """Write the tables of the trees that are named."""
    found = {tree.version: tree.root for tree in identify_all([Path(item) for item in arguments], load())}
    trees = [(str(version), root) for version, root in sorted(found.items())]
    tables = {
        mark: rows(make, [(version, root) for version, root in trees if has_row(root)])
        for mark, (_, make, has_row) in TABLES.items()
    }
    (load().root / RECORD).write_text(record(tables), encoding="utf-8")
    for mark, (heads, _, _) in TABLES.items():
        write(PAGE, mark, table(heads, tables[mark]))
