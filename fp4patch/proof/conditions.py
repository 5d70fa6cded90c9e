"""Conditions on the compute capability in a tree's code, evaluated before and after the patches."""

import ast
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from fp4patch.adapters.vllm import cmake
from fp4patch.catalog.patch import Patch
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.cxx.shape import block
from fp4patch.cxx.tokens import lex, words
from fp4patch.edits.cmake import parse
from fp4patch.edits.operation import Condition
from fp4patch.proof.builds import check_id
from fp4patch.proof.result import BuildResult
from fp4patch.proof.toolchain import Toolchain
from fp4patch.tree.files import decode


@dataclass(frozen=True)
class Cut:
    """Code of a changed file that a condition runs, and the program that runs it."""

    path: str
    shim: Path
    before: tuple[range, ...]
    """Its lines in the pristine text; none if it is not there."""
    after: tuple[range, ...]
    """The same of the patched text."""


CAPABILITIES = ("7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1", "13.0")


def _targets() -> Iterator[str]:
    """Yield the text of ``targets.inc``: ``target.inc`` for each target without a suffix, with ``f`` and with ``a``,
    alone and beside another one, with nvcc's macros."""
    for capability in CAPABILITIES:
        for suffix in ("", "f", "a") if float(capability) >= 9 else ("",):
            macros = Arch.parse(capability + suffix).macros
            for others in ("", ",1300"):
                macros["__CUDA_ARCH_LIST__"] = macros["__CUDA_ARCH__"] + others
                yield "".join(f"#define {name} {value}\n" for name, value in macros.items())
                yield '#include "target.inc"\n'
                yield "".join(f"#undef {name}\n" for name in macros)


_LIMIT = 60
"""Seconds for a condition; it takes a fraction of one."""


def evaluate(
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    patches: Sequence[Patch],
    toolchain: Toolchain,
) -> tuple[list[BuildResult], list[Cut]]:
    """Return the result of each condition in each file that the patches change, and the code that was run."""
    results: list[BuildResult] = []
    cuts: list[Cut] = []
    changed = {path: content for path, content in after.items() if content and content != before.get(path)}
    checks = ((patch, search, check) for patch in patches for search, check in patch.conditions)
    for patch, search, check in checks:
        for path in filter(glob(search).fullmatch, changed):
            old, was_wrong, were = _side(patch, check, check.before, path, before.get(path) or b"", toolchain)
            new, is_wrong, spans = _side(patch, check, check.after, path, changed[path], toolchain)
            detail = "; ".join(filter(None, (was_wrong, is_wrong)))
            results.append(BuildResult(check_id(patch, check), "", path, old, new, detail))
            cuts.append(Cut(path, Path(patch.directory, check.shim), (*were,), (*spans,)))
    return results, cuts


def _side(
    patch: Patch, check: Condition, expected: Sequence[str], path: str, content: bytes, toolchain: Toolchain
) -> tuple[str, str, list[range]]:
    """Return the capabilities for which the code of one side goes on, what is wrong with them, and its lines."""
    try:
        text = decode(content, path)
        spans = _SPANS[Path(check.shim).suffix](text, check)
        code = "".join(f"{text[start:end]}\n" for start, end in spans)
        holds = _capabilities(Path(patch.directory, check.shim), code, toolchain)
    except ProofError as error:
        return error.message, error.help or error.message, []
    except (SyntaxError, LexError) as error:
        return "the file is not understood", str(error), []
    wanted = " ".join(expected) or "none"
    lines = [range(text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 2) for start, end in spans]
    return holds, "" if holds == wanted else f"expected {wanted}, got {holds}", lines


def _capabilities(shim: Path, text: str, toolchain: Toolchain) -> str:
    """Return the capabilities for which the code goes on. A shim's suffix tells its language."""
    with tempfile.TemporaryDirectory(prefix="fp4patch-condition-") as scratch:
        folder = Path(scratch)
        code = folder / "code.inc"
        code.write_text(text, encoding="utf-8")
        command: list[str | Path] = [sys.executable, "-I", "-B", shim, code]
        if shim.suffix == ".cmake":
            program = cmake()
            if program is None:
                raise ProofError("there is no cmake to run the code with", help="pip install cmake")
            command = [program, "-P", shim, code]
        elif shim.suffix != ".py":
            command = [folder / "condition"]
            (folder / "targets.inc").write_text("".join(_targets()), encoding="utf-8")
            includes = f"-I{folder}", f"-I{shim.parent}"
            compiler = [str(toolchain.host_compiler), "-std=c++17", "-w", *includes, str(shim), "-o", "condition"]
            built = process.run(compiler, limit=_LIMIT, folder=folder, environ=toolchain.environ)
            if built.status:
                errors = [line for line in built.err.splitlines() if "error:" in line]
                raise ProofError("the code does not compile", help=next(iter(errors), ""))
        done = process.run_confined(
            [*command, *CAPABILITIES], folder, limit=_LIMIT, folder=folder, environ=toolchain.environ
        )
        if done.status:
            raise ProofError("the code does not run to its end", help=done.said.strip().rpartition("\n")[2])
        # What CMake prints begins with this.
        said = re.sub(r"^-- ", "", done.out, flags=re.MULTILINE) if shim.suffix == ".cmake" else done.out
        return " ".join(said.split()) or "none"


def _cxx(text: str, check: Condition) -> list[tuple[int, int]]:
    source = lex(text)
    begins, through = words(check.begins), words(check.through)
    found = source.find(begins)
    first = found[0] if len(found) == 1 else None
    last = next((at for at in source.find(through) if first is not None and at > first), None) if through else first
    inside = block(source, last + len(through or begins)) if last is not None else None
    if first is None or inside is None:
        raise ProofError(f"there is no one `{check.begins}` with `{check.through or 'a block'}`")
    return [(source.starts[first], source.starts[inside.stop] + 1)]


def _cmake(text: str, check: Condition) -> list[tuple[int, int]]:
    """Return the commands from the one that is ``begins`` to the next one that is ``through``."""
    commands = parse(text).commands
    begins, through = (parse(of).commands[0].meaning for of in (check.begins, check.through))
    found = [at for at, command in enumerate(commands) if command.meaning == begins]
    behind = commands[found[0] :] if len(found) == 1 else ()
    last = next((command for command in behind if command.meaning == through), None)
    if last is None:
        raise ProofError(f"there is no one `{check.begins}` with `{check.through}` behind it")
    return [(behind[0].start, last.end)]


def _python(text: str, check: Condition) -> list[tuple[int, int]]:
    """Return the function of a name; else the statements outside of functions that have the name."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    statements: list[ast.stmt] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, definitions):
            statements += [statement] if statement.name == check.begins else []
        elif any(isinstance(part, ast.Name) and part.id == check.begins for part in ast.walk(statement)):
            statements.append(statement)
    if not statements:
        raise ProofError(f"there is no {check.begins}")
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    return [(starts[part.lineno - 1], starts[part.end_lineno or part.lineno] - 1) for part in statements]


_SPANS = {".cpp": _cxx, ".py": _python, ".cmake": _cmake}
"""What cuts the code out of a file, by the suffix of the shim that runs it."""
