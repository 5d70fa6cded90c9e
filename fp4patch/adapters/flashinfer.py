"""Targets for which FlashInfer's just-in-time build compiles its FP4 modules, by running FlashInfer's own functions.

FlashInfer compiles a module when it is first used, on the GPU's own machine: for the targets that
FLASHINFER_CUDA_ARCH_LIST names, or, if that is not set, for the GPUs that PyTorch finds; some modules for a target of
their own. The functions that declare the modules run in a separate Python (flashinfer_run.py) up to the call of
``gen_jit_spec``, whose ``-gencode`` flags are the result: the build prefers a module's own flags to the common ones
(build_cuda_cflags in jit/cpp_ext.py).

The modelled machine has one GPU, a PyTorch that is built for the CUDA release whose nvcc compiles, and no other
environment variable.
"""

import json
import re
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import packaging
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fp4patch.adapters.kept import KeptResults
from fp4patch.adapters.result import BuildRow, JitTargets
from fp4patch.catalog.target import Build, JitModule
from fp4patch.core import process
from fp4patch.core.arch import GB10, GPUS, Arch, Reach, made_by, reach
from fp4patch.core.cuda import has, known_gpus, refused

TIMEOUT = 300
"""Seconds for all questions about a tree. The sandbox bounds those of the processor, which others may use as well."""

# Example: -gencode=arch=compute_120f,code=sm_120f
_GENCODE = re.compile(r"-gencode=arch=compute_(\w+),code=((sm|compute)_\w+)")
"""As FlashInfer writes it: machine code, or PTX."""
_OTHERWISE = ("-gencode", "--generate-code", "-arch", "--gpu-", "-code")
"""Other notations of the same name."""


class _Answer(BaseModel):
    """The result of one machine: flags of each module, or the exception that stops its build, or neither."""

    model_config = ConfigDict(extra="forbid", strict=True)

    flags: dict[str, list[str]] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    ran: dict[str, list[int]] = {}
    stops: Annotated[str, Field(max_length=2000)] = ""
    unknown: Annotated[str, Field(max_length=2000)] = ""


_ANSWERS = TypeAdapter(list[_Answer])


def evaluate(
    root: Path,
    build: Build,
    questions: Sequence[tuple[str, str]],
    *,
    parts: bool,
    traced: Collection[str] = (),
    kept: KeptResults | None = None,
) -> tuple[BuildRow, ...]:
    """Return the result of the tree's build for each CUDA release and arch list, on each GPU's machine."""
    machines = [(cuda, asked, gpu) for cuda, asked in questions for gpu in GPUS]
    made = run(root, build, machines, parts=parts, traced=traced, kept=kept)
    pairs = [dict(zip(GPUS, made[at : at + len(GPUS)], strict=True)) for at in range(0, len(made), len(GPUS))]
    return tuple(_row(*question, on) for question, on in zip(questions, pairs, strict=True))


def run(
    root: Path,
    build: Build,
    machines: Sequence[tuple[str, str, Arch]],
    *,
    parts: bool,
    traced: Collection[str] = (),
    kept: KeptResults | None = None,
) -> list[JitTargets]:
    """Return the targets of the build's modules for each machine: CUDA release, arch list (empty: not set), GPU."""
    inside = root / "flashinfer"
    below = "flashinfer/" if inside.is_dir() else ""
    asked = {
        "setting": build.setting,
        "traced": sorted(path.removeprefix(below) for path in traced if path.startswith(below)),
        "machines": [_question(build.modules, *machine, parts=parts) for machine in machines],
    }
    name = json.dumps(asked)

    def compiled(answers: Sequence[_Answer]) -> list[JitTargets]:
        pairs = zip(answers, machines, strict=True)
        return [_compiled(answer, build.modules, cuda, below) for answer, (cuda, _, _) in pairs]

    if kept and (known := kept.get(name)):
        return compiled(_ANSWERS.validate_python(known))
    question = json.dumps({"root": str((root / below).absolute()), **asked})
    with tempfile.TemporaryDirectory(prefix="fp4patch-") as folder:
        result = Path(folder).resolve() / "answers.json"
        environ = {"HOME": folder, "TMPDIR": folder, "PATH": "", "CUDA_HOME": "/cuda", "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-I", "-B", str(Path(__file__).with_name("flashinfer_run.py")), str(result)]
        command += [str(Path(packaging.__file__).parents[1])]
        try:
            process.run_confined(
                command, result.parent, limit=TIMEOUT, folder=result.parent, environ=environ, text=question
            )
            written = result.read_bytes() if result.is_file() else b""
            answers = _ANSWERS.validate_json(written)
            made = compiled(answers)
            if kept and not any(answer.unknown for answer in answers):
                kept.put(_ANSWERS.dump_python(answers), name)
            return made
        except OSError as error:
            why = f"its Python {error.strerror}"
        except ValueError:
            why = "its Python ended without a valid result"
    return [JitTargets({}, error=why)] * len(machines)


def _question(modules: Sequence[JitModule], cuda: str, asked: str, gpu: Arch, *, parts: bool) -> dict[str, Any]:
    return {
        "cuda": cuda,
        "targets": [f"compute_{arch.number}" for arch in known_gpus() if has(Version(cuda), arch)],
        "archs": asked,
        "capability": (gpu.major, gpu.minor),
        "processor": "aarch64" if gpu == GB10 else "x86_64",
        "modules": [
            asdict(module) | {"arguments": [one.format(gpu=gpu.number) for one in module.arguments], "parts": parts}
            for module in modules
        ],
    }


def _compiled(answer: _Answer, modules: Sequence[JitModule], cuda: str, below: str) -> JitTargets:
    """Return the targets by the flags of each module. The first that its compiler refuses stops the build."""
    if answer.unknown or answer.stops:
        return JitTargets({}, " ".join(answer.stops.rstrip(".").split()), error=answer.unknown)
    found: dict[str, tuple[str, ...]] = {}
    ptx: dict[str, tuple[str, ...]] = {}
    for module in modules:
        made, beside = set[str](), set[str]()
        for flag in answer.flags.get(module.name, ()):
            target = _GENCODE.fullmatch(flag)
            arch = made_by(target[1], target[2]) if target else None
            if target and arch:
                (made if target[3] == "sm" else beside).add(arch.torch)
            elif flag.startswith("-gencode=arch="):
                return JitTargets({}, f"nvcc does not support {flag}")
            elif flag.startswith(_OTHERWISE):
                return JitTargets({}, error=f"{module.function} returns {flag}")
        if not made:
            return JitTargets({}, error=f"{module.function} names no architectures")
        if stops := refused(Version(cuda), map(Arch.parse, sorted(made))):
            return JitTargets({}, stops)
        found[module.name], ptx[module.name] = tuple(sorted(made)), tuple(sorted(beside))
    parts = {(name, kind): tuple(made) for name, kinds in answer.parts.items() for kind, made in kinds.items()}
    ran = {below + path: frozenset(lines) for path, lines in answer.ran.items()}
    return JitTargets(found, ptx=ptx, parts=parts, ran=ran)


def _row(cuda: str, asked: str, on: dict[Arch, JitTargets]) -> BuildRow:
    if error := next((made.error for made in on.values() if made.error), ""):
        return BuildRow(cuda, asked, (), error=error)
    kernels = {arch for made in on.values() for archs in made.modules.values() for arch in archs}
    ptx = {f"{name} on {gpu}": archs for gpu, made in on.items() for name, archs in made.ptx.items()}
    parts = {(f"{name} on {gpu}", kind): v for gpu, made in on.items() for (name, kind), v in made.parts.items()}
    reaches = {gpu: _together(made, gpu) for gpu, made in on.items()}
    files = {path for made in on.values() for path in made.ran}
    ran = {path: frozenset[int]().union(*(made.ran.get(path, ()) for made in on.values())) for path in files}
    return BuildRow(cuda, asked, tuple(sorted(kernels)), on=on, ptx=ptx, parts=parts, ran=ran, reaches=reaches)


def _together(made: JitTargets, gpu: Arch) -> Reach:
    if served := made.served(gpu):
        return Reach.SUFFIXED if len(served) == len(made.modules) else Reach.PARTLY
    return reach([Arch.parse(arch) for archs in made.modules.values() for arch in archs], gpu)
