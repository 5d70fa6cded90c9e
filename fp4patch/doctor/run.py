"""``fp4patch doctor``: what is in this machine, these trees, these binaries, and what to do about it."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries import registry, scan
from fp4patch.binaries.findings import Finding
from fp4patch.binaries.known_programs import known
from fp4patch.binaries.report import BinaryReport
from fp4patch.catalog.identify import Identified, identify_all
from fp4patch.catalog.manifest import load
from fp4patch.core.arch import GPUS, PTX, Arch, elements, requested
from fp4patch.core.cuda import known_gpus
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.store import cache_dir
from fp4patch.doctor import gpus, machine, requirements, reverse_patches
from fp4patch.doctor.host import Host
from fp4patch.doctor.lists import judge_list
from fp4patch.doctor.packages import settings
from fp4patch.doctor.recommend import toolkit
from fp4patch.doctor.result import (
    NATIVE,
    MachineReport,
    MachineSection,
    Question,
    RecipeReport,
    Requirement,
    TreeReport,
)
from fp4patch.doctor.tree import examine_each
from fp4patch.images import inspection
from fp4patch.images.image import ProofReport
from fp4patch.tree.locked import OnWait
from fp4patch.tree.status import status


def question(
    gpus: str | None,
    arch_list: str | None,
    cuda: str | None,
    require: Sequence[str] = (),
    only: Sequence[str] = (),
    excepted: Sequence[str] = (),
) -> Question:
    """Return what the options ask. Raises UsageError where one of them is not what it must be."""
    required = tuple(one for text in require for one in _requirements(text))
    named = dict.fromkeys((*(() if gpus is None else _gpus(gpus)), *(one.gpu for one in required)))
    return Question(
        tuple(named) or GPUS,
        bool(named),
        _list(arch_list) if arch_list is not None else "",
        _cuda(cuda) if cuda is not None else "",
        required,
        tuple(only),
        tuple(excepted),
    )


def _requirements(text: str) -> tuple[Requirement, ...]:
    named, colon, what = text.partition(":")
    variant = what.removeprefix("variant=") if what.startswith("variant=") else ""
    if colon and what != NATIVE and not variant:
        help_text = "for example --require sm_121, --require sm_121:native, or --require sm_121:variant=next3"
        raise UsageError(f"{text!r} requires {what!r}", help=help_text)
    variant = load().variant(variant).name if variant else ""
    return tuple(Requirement(gpu, native=what == NATIVE, variant=variant) for gpu in _gpus(named))


def _gpus(text: str) -> tuple[Arch, ...]:
    """Parse ``sm_121,sm_120`` or ``gb10``; UsageError for anything that is no known GPU's own plain architecture."""
    archs, names = known_gpus(), known().gpu
    help_text = f"for example --for gb10, or --for sm_120,sm_121; known are {', '.join([*names, *map(str, archs)])}"
    found = requested(",".join(names.get(part.lower(), part) for part in elements(text)) or text, help_text)
    for arch in found:
        if arch not in archs:
            raise UsageError(f"{arch} is not a GPU", help=help_text)
    return found


def _list(text: str) -> str:
    """Return a TORCH_CUDA_ARCH_LIST in PyTorch's notation, with semicolons; UsageError for any other text."""
    help_text = "for example --arch-list '12.0a;12.1a'"
    for arch in requested(text, help_text, ptx=True):
        if arch.gpu not in known_gpus():
            raise UsageError(f"{arch.torch} is a target of no known CUDA release", help=help_text)
    parts = [(part, PTX if part.endswith(PTX) else "") for part in elements(text)]
    return ";".join(Arch.parse(part.removesuffix(ptx)).torch + ptx for part, ptx in parts)


def _cuda(text: str) -> str:
    """Return ``13.0`` of ``13.0``, ``13.0.2`` or ``13``; UsageError for anything else."""
    if not re.fullmatch(r"\d+(\.\d+)*", text, re.ASCII):
        raise UsageError(f"{text!r} is not a CUDA release", help="for example --cuda 13.0")
    return ".".join([*text.split("."), "0"][:2])


def examine_machine(question: Question, python: str = "") -> MachineReport:
    """Look at this machine and a Python, as far as the GPUs go that are asked about, or that it has."""
    host = Host.here(python)
    own = question.gpus if question.named else gpus.sm12x(gpus.driver(host))
    found = machine.examine(host, own, cache=cache_dir() / "doctor")
    cuda = Version(question.cuda) if question.cuda else toolkit()
    return replace(found, sections=tuple(_judged(section, host, own, cuda) for section in found.sections))


def _judged(section: MachineSection, host: Host, own: Sequence[Arch], cuda: Version | None) -> MachineSection:
    """Return the section, its lists of architectures judged by what surveyed releases make of them."""

    def judged(finding: Finding) -> Finding:
        if finding.subject not in settings():
            return finding
        return judge_list(load(), finding, host.environ[finding.subject], own, cuda)

    return replace(section, findings=tuple(map(judged, section.findings)))


def is_release(name: str) -> bool:
    """Return whether a release of a target is meant, as ``fetch`` takes it: ``vllm==0.33.0``."""
    return name.partition("==")[0] in load().targets and "==" in name and not Path(name).exists()


def find(name: str) -> Path | None:
    """Return the file or directory that is meant: a path, or the name of an installed package; None: an image's name.

    UsageError if it can be none of these.
    """
    if name.startswith(registry.SCHEME):
        return None
    try:
        if name and Path(name).exists():
            return Path(name)
    except OSError as error:
        raise UsageError(f"cannot look at {name}: {error.strerror}", help="check its permissions") from None
    if folder := _installed(name):
        return folder
    if name.startswith((".", "/", "~")) or name.endswith(_FILES) or not _IMAGE.fullmatch(name):
        raise UsageError(f"{name} does not exist", help="name a file, a directory, an installed package or an image")
    return None


def as_trees(path: Path | None) -> list[Identified]:
    """Return the source tree at ``path`` and those that it contains; none if it is not one."""
    try:
        return identify_all([path], load()) if path else []
    except Refused:
        return []


def examine_trees(trees: Sequence[Identified], question: Question, *, on_wait: OnWait) -> tuple[TreeReport, ...]:
    """Complete reports on source trees. Nothing changes, except that an interrupted command is finished."""
    states = {found.root: found for found in status([tree.root for tree in trees], on_wait=on_wait)}
    return tuple(
        report for tree in trees for report in examine_each(tree, states[tree.root], [question], on_wait=on_wait)
    )


def examine_recipes(path: Path | None, *, tree: bool) -> RecipeReport | None:
    """Look for Dockerfiles, scripts and patch files that take SM121 out of CUTLASS's guard.

    None where there is nothing to report: no recipe, or a source tree (``tree``) whose recipes are as they should be.
    """
    if path is None or not (path.is_dir() or reverse_patches.is_recipe(path)):
        return None
    read, findings = reverse_patches.examine(path)
    return RecipeReport(str(path), read, findings) if findings or (read and not tree) else None


def examine_binary(path: Path | None, name: str, question: Question, *, on_step: OnProgress) -> BinaryReport:
    """Look into a file with device code or a directory of such; without a path, into the image of that name.

    It is judged for the GPUs that are asked about, else for those of this machine, else for both. Raises BinaryError.
    """
    driver = gpus.driver(Host.here())
    driver_cuda = driver.cuda if driver else ""
    own = question.gpus if question.named else gpus.sm12x(driver) or question.gpus
    if path:
        found = scan.examine(
            path,
            gpus=own,
            progress=on_step,
            cache=cache_dir() / "doctor",
            driver_cuda=driver_cuda,
        )
    else:
        found = scan.examine_image(name, gpus=own, progress=on_step, driver_cuda=driver_cuda)
    return replace(found, requirements=requirements.judge(found, question, driver_cuda))


def examine_proof(path: Path | None, name: str) -> ProofReport | None:
    """Check the labels and the proof of an image of the engine, or the proof in a directory; None if it has neither."""
    if path:
        return inspection.of_directory(path) if path.is_dir() else None
    return None if name.startswith(registry.SCHEME) else inspection.of_image(name)


_FILES = (".whl", ".zip", ".so", ".a", ".o", ".cubin", ".fatbin", ".tar", ".gz")
"""Suffixes of names that mean a file, even if it does not exist."""

_IMAGE = re.compile(r"[\w.:-]+(/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")
"""``vllm/vllm-openai:v0.33.0``, ``localhost:5000/vllm``."""


def _installed(name: str) -> Path | None:
    """Return the directory of a package that this Python could import; nothing is imported."""
    if not name.isidentifier():
        return None
    spec = importlib.util.find_spec(name)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
