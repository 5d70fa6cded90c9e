"""Read from a release of vLLM the order of its NVFP4 kernels for dense layers on SM12x.

Upstream's own choice is executed: ``init_nvfp4_linear_kernel`` over ``_POSSIBLE_NVFP4_KERNELS`` since 0.20,
``select_nvfp4_linear_backend`` since 0.16, and before the ``__init__`` of the two classes of such layers. It is asked
again without what it chose before: by ``VLLM_DISABLED_KERNELS``, and before 0.20 without the library that it asked for
last. Names are those of the log.
"""

import ast
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.pages._vllm_stand_ins import CAPABILITIES, Gpu, Present, Unset, alike, call, define, functions

KERNELS = "vllm/model_executor/kernels/linear"
QUANTIZATION = "vllm/model_executor/layers/quantization"
SELECT = f"{QUANTIZATION}/utils/nvfp4_utils.py"
SCHEMES = f"{QUANTIZATION}/compressed_tensors/schemes"
CLASSES = {
    "ModelOpt": ("ModelOptNvFp4LinearMethod", f"{QUANTIZATION}/modelopt.py"),
    "compressed-tensors": ("CompressedTensorsW4A4Fp4", f"{SCHEMES}/compressed_tensors_w4a4_nvfp4.py"),
}
IN_16_BITS = ("w4a16", "marlin", "humming")
"""Parts of the names of kernels that multiply in 16 bits, whatever activations the checkpoint has."""


def row(tree: Path) -> list[str]:
    """Return the kernels tried for activations of 4 bits, and those for 16 bits."""
    cells: list[str] = alike([[_four_bits(tree, gpu), _sixteen_bits(tree, gpu)] for gpu in CAPABILITIES], tree)
    return cells


def _four_bits(tree: Path, gpu: tuple[int, int]) -> str:
    if (tree / KERNELS / "nvfp4").is_dir():
        return _cell(registered(tree, gpu))
    if (tree / SELECT).is_file():
        return _cell(selected(tree, gpu))
    orders = {of: _cell(constructed(tree / path, owner, gpu)) for of, (owner, path) in CLASSES.items()}
    return "; ".join(f"{of}: {order}" for of, order in orders.items())


def _sixteen_bits(tree: Path, gpu: tuple[int, int]) -> str:
    if (tree / KERNELS / "nvfp4").is_dir():
        choice = _function(tree / KERNELS / "__init__.py", "init_nvfp4_linear_kernel")
        if choice.args.args:
            return _cell(registered(tree, gpu, use_a16=True))
    path = tree / SCHEMES / "compressed_tensors_w4a16_nvfp4.py"
    calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    if any(isinstance(node.func, ast.Name) and node.func.id == "apply_fp4_marlin_linear" for node in calls):
        return "_`marlin`_, without a choice"
    return "not evaluated"


def _cell(names: list[str]) -> str:
    def shown(name: str) -> str:
        mark = "_" * any(part in name.lower() for part in IN_16_BITS)
        return f"{mark}`{name.replace('NvFp4', '').replace('LinearKernel', '')}`{mark}"

    return ", ".join(map(shown, names)) or "-"


def _function(path: Path, name: str, owner: str = "") -> ast.FunctionDef:
    return next(item for of, item in functions(path) if (of, item.name) == (owner, name))


def _names(gpu: tuple[int, int]) -> Present:
    """Return a namespace in which ``--linear-backend`` and vLLM's variables are not set."""
    return Present(current_platform=Gpu(gpu), envs=Unset(), get_current_vllm_config_or_none=lambda: None)


# --- since 0.20 ------------------------------------------------------------------------------------------------------


def registered(tree: Path, gpu: tuple[int, int], **arguments: bool) -> list[str]:
    """Return the kernels that ``init_nvfp4_linear_kernel`` chooses, each where those before it are disabled.

    One that it takes without asking for others ends the list.
    """
    names = _names(gpu)
    path = tree / KERNELS / "__init__.py"
    chosen = list[str]()
    names["current_platform"]._enum = names["PlatformEnum"].CUDA
    names["envs"].VLLM_DISABLED_KERNELS = chosen
    module = ast.parse(path.read_text(encoding="utf-8"))
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom):
            _load(names, tree, statement)
    define(names, path, *(item for item in module.body if isinstance(item, ast.FunctionDef)))
    listed = next(item for item in module.body if _assigns(item, "_POSSIBLE_NVFP4_KERNELS"))
    for node in ast.walk(listed):
        if isinstance(node, ast.Name) and node.id.endswith("LinearKernel"):
            names[node.id] = _kernel(tree, node.id, gpu)
    define(names, path, listed)
    while True:
        try:
            kernel = type(names["init_nvfp4_linear_kernel"](**arguments)).__name__
        except ValueError:  # none is left
            return chosen
        if kernel in chosen:
            return chosen
        chosen.append(kernel)


def _assigns(statement: ast.stmt, name: str) -> bool:
    to = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return any(isinstance(target, ast.Name) and target.id == name for target in to)


def _load(names: Present, tree: Path, statement: ast.ImportFrom) -> None:
    """Define the functions that a statement imports from the tree, with what their files assign: they decide, too."""
    module = tree / (statement.module or "").replace(".", "/")
    for path in sorted(module.glob("*.py")) if module.is_dir() else filter(Path.is_file, [module.with_suffix(".py")]):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        asked = {alias.name for alias in statement.names}
        found = [item for item in body if isinstance(item, ast.FunctionDef) and item.name in asked]
        if found:
            constants = (item for item in body if isinstance(item, (ast.Assign, ast.AnnAssign)))
            define(names, path, *constants, *found)


def _kernel(tree: Path, name: str, gpu: tuple[int, int]) -> type:
    """Return a class of this name whose answers are those of upstream's class, which are executed."""

    def answer(method: str) -> Callable[..., Any]:
        return staticmethod(lambda *arguments: _answer(tree, name, method, _names(gpu), *arguments))

    methods = {method: answer(method) for method in ("is_supported", "can_implement")}
    return type(name, (), {"__init__": lambda *_: None, **methods})


def _answer(tree: Path, name: str, method: str, names: Present, *arguments: object) -> Any:
    """Return the answer of a method of a class, or of its base. SystemExit if neither has it."""
    for path in sorted((tree / KERNELS / "nvfp4").glob("*.py")):
        for owner in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(owner, ast.ClassDef) or owner.name != name:
                continue
            for item in owner.body:
                if isinstance(item, ast.FunctionDef) and item.name == method:
                    return call(names, path, item, *arguments)
            return _answer(tree, ast.unparse(owner.bases[0]), method, names, *arguments)
    message = f"{tree}: {name} has no {method}"
    raise SystemExit(message)


# --- before 0.20 -----------------------------------------------------------------------------------------------------


def selected(tree: Path, gpu: tuple[int, int]) -> list[str]:
    """Return the backends that ``select_nvfp4_linear_backend`` chooses, each without the libraries of those before."""
    path = tree / SELECT

    def choose(names: Present) -> str:
        names["Enum"] = Enum
        body = ast.parse(path.read_text(encoding="utf-8")).body
        define(names, path, *(item for item in body if isinstance(item, ast.ClassDef)))
        return str(call(names, path, _function(path, "select_nvfp4_linear_backend")).value)

    return _without(choose, gpu)


def constructed(path: Path, owner: str, gpu: tuple[int, int]) -> list[str]:
    """Return the same of the ``__init__`` of a class."""

    def choose(names: Present) -> str:
        layer, function = SimpleNamespace(), _function(path, "__init__", owner)
        call(names, path, function, layer, *([None] * (len(function.args.args) - 1)))
        return str(layer.backend)

    return _without(choose, gpu)


def _without(choose: Callable[[Present], str], gpu: tuple[int, int]) -> list[str]:
    chosen, absent = list[str](), set[str]()
    while True:
        names = _names(gpu)
        names.absent |= absent
        try:
            backend = choose(names)
        except (ValueError, AssertionError):  # none is left
            return chosen
        chosen.append(backend)
        asked = [name for name in names.asked if name.startswith("has_") or name.endswith("_supported")]
        if not asked:  # it takes this one without a question
            return chosen
        absent.add(asked[-1])
