"""Read from a release of vLLM what becomes of an NVFP4 KV cache on SM12x: is it admitted, and whose kernel fills it?

FlashInfer's backend is the only one with such a cache, but for MLA and MiniMax-M3. What it says of the type is run, and
so is what it does with it when it is built.
"""

import ast
from pathlib import Path
from types import SimpleNamespace

from tools.pages._vllm_stand_ins import CAPABILITIES, Gpu, Present, Unset, alike, call, define, functions

BACKEND = "vllm/v1/attention/backends/flashinfer.py"
WRITER = "csrc/**/nvfp4_kv_cache_kernels.cu"
OTHER_WRITER = "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping"


def row(tree: Path) -> list[str]:
    """Return whether ``--kv-cache-dtype nvfp4`` is admitted, and whose kernel fills the cache."""
    cells: list[str] = alike([_row(tree, gpu) for gpu in CAPABILITIES], tree)
    return cells


def _row(tree: Path, gpu: tuple[int, int]) -> list[str]:
    writers = [path.read_text(encoding="utf-8") for path in tree.glob(WRITER)]
    if not writers:
        return ["unknown", "-"]
    is_swizzled = any("swizzle_scale_offset(block_offset," in text for text in writers)
    ours = "vLLM's, V's block scales swizzled" if is_swizzled else "vLLM's"
    if not _says_yes(tree, gpu) or _ends(tree, gpu):
        return ["refused", ours]
    names = _names(tree, gpu)
    called = OTHER_WRITER in (tree / BACKEND).read_text(encoding="utf-8") and names["_nvfp4_kv_on_fa2"]()
    return ["admitted", "FlashInfer's, in the order of the tokens" if called else ours]


def _names(tree: Path, gpu: tuple[int, int]) -> Present:
    """Return a namespace with the functions that tell which of FlashInfer's kernels a GPU has."""
    names = Present(current_platform=Gpu(gpu), envs=Unset())
    for file, name in (("vllm/utils/flashinfer.py", "supports_trtllm_attention"), (BACKEND, "_nvfp4_kv_on_fa2")):
        define(names, tree / file, *(item for _, item in functions(tree / file) if item.name == name))
    return names


def _says_yes(tree: Path, gpu: tuple[int, int]) -> bool:
    """Return whether the backend supports the type: by its own function, or by its list."""
    path = tree / BACKEND
    for owner, function in functions(path):
        if (owner, function.name) == ("FlashInferBackend", "supports_kv_cache_dtype"):
            return bool(call(_names(tree, gpu), path, function, "nvfp4"))
    listed = next(
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "supported_kv_cache_dtypes" and node.value
    )
    return "nvfp4" in ast.literal_eval(listed)


def _ends(tree: Path, gpu: tuple[int, int]) -> bool:
    """Return whether the backend's builder raises an error with such a cache: the statements about it are run."""
    path = tree / BACKEND
    build = next(
        item for owner, item in functions(path) if (owner, item.name) == ("FlashInferMetadataBuilder", "__init__")
    )
    names = _names(tree, gpu)
    on_fa2 = bool(names["_nvfp4_kv_on_fa2"]())
    names["self"] = SimpleNamespace(is_kvcache_nvfp4=True, cache_dtype="nvfp4", nvfp4_trtllm=not on_fa2)
    abouts = [
        node
        for node in ast.walk(build)
        if isinstance(node, ast.If)
        and ast.unparse(node.test) in ("self.is_kvcache_nvfp4", "self.nvfp4_trtllm")
        and any(isinstance(part, ast.Raise) for part in ast.walk(node))
    ]
    for node in abouts:
        try:
            define(names, path, node)
        except (ValueError, NotImplementedError):
            return True
    return False
