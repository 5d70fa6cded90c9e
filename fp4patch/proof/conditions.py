"""Conditions on the compute capability in a tree's code, evaluated before and after the patches."""

import ast
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from fp4patch.adapters.vllm import cmake, cmake_identity
from fp4patch.catalog.patch import Patch
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.globs import glob
from fp4patch.core.lex_error import LexError
from fp4patch.core.process import processors
from fp4patch.core.results import State
from fp4patch.core.store import Store, files_hash, key, source_hash
from fp4patch.cxx.shape import block
from fp4patch.cxx.tokens import lex, words
from fp4patch.edits.cmake import parse
from fp4patch.edits.operation import Condition
from fp4patch.proof.builds import check_id
from fp4patch.proof.mutants import mutants
from fp4patch.proof.result import BuildResult, SetAside
from fp4patch.proof.subject import Idle
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
    loose: frozenset[int] = frozenset()
    """Those of them that have a mutant for which the condition gives the same."""


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
    store: Store | None = None,
) -> tuple[list[BuildResult], list[Cut]]:
    """Return the result of each condition in each file that the patches change, and the code that was run.

    ``store`` has the answers of before, by code and program.
    """
    kept = _Kept(toolchain, store)
    results: list[BuildResult] = []
    cuts: list[Cut] = []
    changed = {path: content for path, content in after.items() if content and content != before.get(path)}
    checks = ((patch, search, check) for patch in patches for search, check in patch.conditions)
    for patch, search, check in checks:
        for path in filter(glob(search).fullmatch, changed):
            shim = Path(patch.directory, check.shim)
            old = _side(shim, check, check.before, path, before.get(path) or b"", kept)
            new = _side(shim, check, check.after, path, changed[path], kept)
            detail = "; ".join(filter(None, (old.wrong, new.wrong)))
            results.append(BuildResult(check_id(patch, check), "", path, old.holds, new.holds, detail))
            loose = frozenset[int]() if detail else _loose(shim, old, new, kept)
            cuts.append(Cut(path, shim, old.lines, new.lines, loose))
    return results, cuts


def evaluate_idle(
    idle: Sequence[Idle], toolchain: Toolchain, store: Store | None = None
) -> tuple[list[BuildResult], list[SetAside]]:
    """Return the result of each condition in text that an edit leaves as it is, and the reasons where it has none.

    That upstream has the change is a failure where the condition still gives what it gave before. Upstream may have
    made it otherwise, or have no need of it: then what the patch says of it stands in the report.
    """
    kept = _Kept(toolchain, store)
    results: list[BuildResult] = []
    aside: list[SetAside] = []
    for path, content, patch, check, why in idle:
        side = _side(Path(patch.directory, check.shim), check, check.after, path, content, kept)
        is_old = side.holds == (" ".join(check.before) or "none")
        if not side.wrong or (is_old and why.state is State.UPSTREAMED):
            results.append(BuildResult(check_id(patch, check), "", path, side.holds, side.holds, side.wrong))
        else:
            because = f"{path} is left as it is, since {why.because}; it gives: {side.holds}"
            aside.append(SetAside(check_id(patch, check), because))
    return results, aside


@dataclass(frozen=True)
class _Kept:
    """Answers of conditions' programs, each from the user's cache if it has it."""

    toolchain: Toolchain
    store: Store | None

    def get(self, shim: Path, text: str) -> str:
        """Return the answer to a text; empty if there is none."""
        found = self.store.get(self._name(shim, text)) if self.store else None
        return found if isinstance(found, str) else ""

    def put(self, shim: Path, text: str, answer: str) -> None:
        """Keep an answer that is the same every time."""
        if self.store:
            self.store.put(self._name(shim, text), answer)

    def _name(self, shim: Path, text: str) -> str:
        toolchain = self.toolchain
        by = {".py": sys.version, ".cmake": cmake_identity()}.get(shim.suffix, toolchain.info.host_compiler)
        ours = source_hash("fp4patch.proof"), files_hash(shim.parent)
        return key(*ours, shim.name, by, toolchain.fingerprint, "text", text)


class _Side(NamedTuple):
    """The code of a condition on one side."""

    holds: str
    """The capabilities for which it goes on, or the reason why that is not known."""
    wrong: str
    """What is wrong with them."""
    code: str = ""
    lines: tuple[range, ...] = ()
    """The lines of its parts in the file."""


def _side(shim: Path, check: Condition, expected: Sequence[str], path: str, content: bytes, kept: _Kept) -> _Side:
    try:
        text = decode(content, path)
        spans = _SPANS[shim.suffix](text, check)
        code = "".join(f"{text[start:end]}\n" for start, end in spans)
        holds = kept.get(shim, code)
        if not holds:
            holds = _capabilities(shim, code, kept.toolchain)
            kept.put(shim, code, holds)
    except ProofError as error:
        return _Side(error.message, error.help or error.message)
    except (SyntaxError, LexError) as error:
        return _Side("the file is not understood", str(error))
    wanted = " ".join(expected) or "none"
    lines = (range(text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 2) for start, end in spans)
    return _Side(holds, "" if holds == wanted else f"expected {wanted}, got {holds}", code, (*lines,))


def _loose(shim: Path, old: _Side, new: _Side, kept: _Kept) -> frozenset[int]:
    """Return the lines of the new code that have a mutant for which the condition gives the same."""
    places = [line for span in new.lines for line in span]
    made = list(mutants(_LANGUAGES[shim.suffix], old.code, new.code))
    gave = {text: kept.get(shim, text) for text in dict.fromkeys(mutant.text for mutant in made)}
    unknown = [text for text, answer in gave.items() if not answer]
    for text, (answer, is_certain) in zip(unknown, _answers(shim, unknown, kept.toolchain), strict=True):
        gave[text] = answer
        if is_certain:
            kept.put(shim, text, answer)
    return frozenset(places[mutant.line - 1] for mutant in made if gave[mutant.text] in ("", new.holds))


def _answers(shim: Path, texts: Sequence[str], toolchain: Toolchain) -> Sequence[tuple[str, bool]]:
    """Return for each text the capabilities for which it goes on, or what is wrong with it, and whether that is so
    every time; an empty text where nothing is known."""
    if not texts:
        return []
    if shim.suffix != ".py":
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(lambda text: _answer(shim, text, toolchain), texts))
    with tempfile.TemporaryDirectory(prefix="fp4patch-condition-") as scratch:
        folder = Path(scratch)
        files = [folder / f"{at}.inc" for at in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        runner = Path(__file__).with_name("condition_run.py")
        command: list[str | Path] = [sys.executable, "-I", "-B", runner, shim, ",".join(CAPABILITIES), *files]
        try:
            done = process.run_confined(command, folder, limit=_LIMIT, folder=folder, environ=toolchain.environ)
            said = json.loads(done.out)
        except (TimeoutError, ValueError):  # the mutants together take too long: none is told from the code
            return [("", False) for _ in texts]
    return [("no answer", False) if one is None else (" ".join(one.split()) or "none", True) for one in said]


def _answer(shim: Path, text: str, toolchain: Toolchain) -> tuple[str, bool]:
    try:
        return _capabilities(shim, text, toolchain), True
    except ProofError as error:
        return error.message, True
    except TimeoutError as error:
        return str(error), False


_LANGUAGES = {".cpp": "c++", ".py": "python", ".cmake": "cmake"}
"""The language of a condition, by the suffix of its program."""


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
