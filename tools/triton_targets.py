"""Compile the conversions to E2M1 of a torchao tree by Triton, for each GPU, and print what ptxas reports.

    pip install triton setuptools
    python tools/triton_targets.py TREE/torchao/prototype/moe_training/nvfp4_training/hadamard_utils.py

The functions are taken out of the file, which imports PyTorch, and compiled alone. No GPU is needed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import tempfile
import textwrap
from pathlib import Path

GPUS = (100, 103, 120, 121)
CALLS = {
    "convert_8xfp32_to_4xfp4_packed": "(a, b)",
    "convert_8xfp32_to_4xfp4_packed_rs": "(a, b), tl.load(random + i)",
}
KERNEL = """
@triton.jit
def of_{name}(values, random, packed):
    i = tl.arange(0, 128)
    a = tl.load(values + 2 * i)
    b = tl.load(values + 2 * i + 1)
    tl.store(packed + i, {name}({arguments}))
"""


def module(source: str) -> str:
    """Return the text of a module with the functions and a kernel for each."""
    lines = source.splitlines()
    text = "import triton\nimport triton.language as tl\n"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.decorator_list and node.name in CALLS:
            function = "\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno])
            text += "\n" + textwrap.dedent(function) + "\n"
            text += KERNEL.format(name=node.name, arguments=CALLS[node.name])
    return text


def main(file: Path) -> None:
    """Print one line for each function and GPU."""
    triton, backends, compiler = map(importlib.import_module, ("triton", "triton.backends.compiler", "triton.compiler"))
    with tempfile.TemporaryDirectory() as scratch:
        # Triton reads the source of a function from its file.
        made = Path(scratch, "kernels.py")
        made.write_text(module(file.read_text(encoding="utf-8")), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("kernels", made)
        assert spec
        assert spec.loader
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        for gpu in GPUS:
            for name in CALLS:
                kernel = getattr(kernels, f"of_{name}", None)
                if kernel is None:
                    sys.exit(f"{file} has no {name}")
                signature = {"values": "*fp32", "random": "*u32", "packed": "*u8"}
                source = compiler.ASTSource(fn=kernel, signature=signature, constexprs={})
                try:
                    triton.compile(source, target=backends.GPUTarget("cuda", gpu, 32))
                    found = "compiled"
                except Exception as error:
                    found = next((line for line in str(error).splitlines() if "error   :" in line), str(error)[:99])
                sys.stdout.write(f"{gpu} {name}: {found}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
