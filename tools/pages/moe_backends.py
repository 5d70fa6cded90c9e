"""Read from each release of vLLM the order in which it tries the backends of NVFP4 mixture of experts on SM12x.

    python -m tools.regenerate moe-backends TREE...

It replaces the table of docs/moe-backends.md. The order is the list in ``select_nvfp4_moe_backend``; whether a backend
accepts the GPU is the answer of the ``_supports_current_device`` of its kernels, which are executed with stand-ins: a
GPU of capability 12.0 or 12.1, and every library that they ask for present.
"""

import ast
import builtins
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from tools.pages._made_part import write

PAGE = Path(__file__).parents[2] / "docs/moe-backends.md"
LAYERS = "vllm/model_executor/layers/fused_moe"
CAPABILITIES = ((12, 0), (12, 1))
ACTIVATIONS = ("4 bits", "16 bits")


class Gpu:
    """Stand in for vLLM's ``current_platform`` on a GPU of this capability."""

    def __init__(self, capability: tuple[int, int]) -> None:
        """Keep the capability."""
        self.capability = capability

    def is_cuda(self) -> bool:
        """Return true, as on every GPU of NVIDIA."""
        return True

    is_cuda_alike = is_cuda

    def is_device_capability(self, asked: tuple[int, int] | int) -> bool:
        """Return whether the GPU has exactly this capability: (12, 1) or 121."""
        return self.capability == (divmod(asked, 10) if isinstance(asked, int) else asked)

    def is_device_capability_family(self, asked: int) -> bool:
        """Return whether the GPU is of the family, such as 120."""
        return self.capability[0] == asked // 10

    def has_device_capability(self, asked: tuple[int, int] | int) -> bool:
        """Return whether the GPU has at least this capability."""
        return self.capability >= (divmod(asked, 10) if isinstance(asked, int) else asked)


class Present(dict[str, Any]):
    """Names of a module's namespace: what is not set is a library that has all that it is asked for."""

    def __missing__(self, name: str) -> MagicMock:
        """Return an object that is true and that returns such an object when called; the same for the same name."""
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name] = stand_in = MagicMock()
        return stand_in


def _functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield from ((node.name, item) for item in node.body if isinstance(item, ast.FunctionDef))
        elif isinstance(node, ast.Module):
            yield from (("", item) for item in node.body if isinstance(item, ast.FunctionDef))


def _last_name(expression: ast.expr) -> str:
    return ast.unparse(expression).rpartition(".")[2]


def order(oracle: Path) -> list[str]:
    """Return the backends in the order in which they are tried."""
    select = next(item for _, item in _functions(oracle) if item.name == "select_nvfp4_moe_backend")
    lists = [
        node.value for node in ast.walk(select) if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    ]
    return [item.attr for item in lists[0].elts if isinstance(item, ast.Attribute)]


def kernels(oracle: Path) -> dict[str, list[str]]:
    """Return for each backend the names of its kernels' classes."""
    choose = next(item for _, item in _functions(oracle) if item.name == "backend_to_kernel_cls")
    classes = {}
    for branch in ast.walk(choose):
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Compare):
            (backend,) = branch.test.comparators
            returned = next(item for item in branch.body if isinstance(item, ast.Return)).value
            names = returned.elts if isinstance(returned, ast.List) else [returned]
            classes[_last_name(backend)] = [item.id for item in names if isinstance(item, ast.Name)]
    return classes


def requested(oracle: Path) -> dict[str, str]:
    """Return for each backend the value of ``--moe-backend`` that asks for it."""
    mapped = next(item for _, item in _functions(oracle) if item.name == "map_nvfp4_backend")
    table = next(node for node in ast.walk(mapped) if isinstance(node, ast.Dict))
    return {
        _last_name(value): ast.literal_eval(key) for key, value in zip(table.keys, table.values, strict=True) if key
    }


def executed(tree: Path, kernel: str, method: str, names: Present, *arguments: object) -> bool | None:
    """Return the answer of a method of the kernel's class, or of the nearest of its bases; None if none has it."""
    for path in (tree / LAYERS).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(rf"^class {kernel}\b", text, re.MULTILINE):
            continue
        (owner,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == kernel)
        for function in owner.body:
            if isinstance(function, ast.FunctionDef) and function.name == method:
                code = ast.parse(textwrap.dedent(ast.unparse(function)).replace("@staticmethod\n", ""))
                exec(compile(code, str(path), "exec"), names)  # noqa: S102 - the code of a pinned archive
                return bool(names[method](*arguments))
        bases = [_last_name(base) for base in owner.bases]
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
    return scheme and device


def row(tree: Path) -> list[str]:
    """Return the backends tried for activations of 4 bits, those for 16 bits, and those that only an option chooses."""
    oracle = tree / LAYERS / "oracle/nvfp4.py"
    by_backend, options, listed = kernels(oracle), requested(oracle), order(oracle)

    def works(backend: str, activations: str) -> bool:
        both = [any(accepts(tree, name, activations, gpu) for name in by_backend[backend]) for gpu in CAPABILITIES]
        if both[0] != both[1]:
            message = f"{tree}: {backend} answers differently for {CAPABILITIES}: the table needs a column for each"
            raise SystemExit(message)
        return both[0]

    cells = [[backend for backend in listed if works(backend, activations)] for activations in ACTIVATIONS]
    others = [item for item in by_backend if item not in listed and any(works(item, kind) for kind in ACTIVATIONS)]
    return [", ".join(f"`{options.get(item, item.lower())}`" for item in items) or "-" for items in (*cells, others)]


def table(trees: Sequence[tuple[str, Path]]) -> str:
    """Return the rows of releases with their trees, those of equal content as one."""
    lines = ["| vLLM | activations of 4 bits | activations of 16 bits | only by option |", "|---|---|---|---|"]
    for cells, group in itertools.groupby(((version, row(root)) for version, root in trees), key=lambda item: item[1]):
        releases = [version for version, _ in group]
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        lines.append(f"| {span} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Write the table of the trees that are named."""
    trees = {tree.version: tree.root for tree in identify_all([Path(item) for item in arguments], load())}
    write(PAGE, "moe-backends", table([(str(version), root) for version, root in sorted(trees.items())]))
