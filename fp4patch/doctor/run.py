"""``fp4patch doctor``: what is in this machine, these trees, these binaries, and what to do about it."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TypeVar, cast

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as PackageRequirement
from packaging.utils import canonicalize_name

from fp4patch.binaries import registry
from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import known
from fp4patch.binaries.report import BinaryReport
from fp4patch.catalog.identify import Identified, identify_all, is_at
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.core.arch import GB10, GPUS, PTX, Arch, elements, requested
from fp4patch.core.cuda import known_gpus
from fp4patch.core.errors import Fp4PatchError, NothingCompiledError, Refused, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.wording import joined, listed, suggested
from fp4patch.doctor import (
    companions,
    configured,
    gpus,
    inputs,
    known_defects,
    machine,
    machine_texts,
    messages,
    model,
    packages,
    projects,
    recipe_releases,
    recipes,
    recorded,
    requirements,
)
from fp4patch.doctor.gpus import ask_driver
from fp4patch.doctor.host import Host
from fp4patch.doctor.packages import variant_of
from fp4patch.doctor.readings import files
from fp4patch.doctor.result import (
    DoctorReport,
    FindingsReport,
    ProjectReport,
    Question,
    Requirement,
)
from fp4patch.doctor.tree import cuda_of, read_facts
from fp4patch.doctor.tree_answers import judge
from fp4patch.images import inspection
from fp4patch.sources import unpacked
from fp4patch.tree.status import status

_CUDA = {11: 8, 12: 9, 13: 5}
"""The newest minor release of each major release of CUDA that is known."""
_PYTORCHS = re.compile(r"\d+\.\d")
"""The beginning of an architecture as PyTorch writes it: ``12.1a``, and not ``121a``."""
_COMPILED = (".so", ".a", ".o", ".cubin", ".fatbin", ".whl", ".dll", ".lib", ".obj", ".ltoir")
_INSTALL = ("dockerfile", "shell", "yaml", "toml")
"""Languages of files that install releases."""
_DEEPEST = 3
"""Directories below a named one in which known source trees are looked for."""


def question(gpus: Sequence[str], arch_list: str | None, cuda: str | None, require: Sequence[str] = ()) -> Question:
    """Return what the options ask. Raises UsageError where one of them is not what it must be."""
    required = tuple(one for text in require for one in _requirements(text))
    named = dict.fromkeys((*(gpu for text in gpus for gpu in _gpus(text)), *(one.gpu for one in required)))
    return Question(
        tuple(named) or GPUS,
        bool(named),
        _list(arch_list) if arch_list is not None else "",
        _cuda(cuda) if cuda is not None else "",
        required,
        next((part for part in elements(arch_list or "") if not _PYTORCHS.match(part)), ""),
    )


# Example: sm_121:native:except=hopper*
_REQUIREMENT = re.compile(r"([^:]*)(?::(?:(native|fp4)|variant=([^:]+)))?((?::(?:only|except)=[^:]+)*)")


def _requirements(text: str) -> tuple[Requirement, ...]:
    found = _REQUIREMENT.fullmatch(text)
    if not found:
        help_text = "for example sm_121:fp4, sm_121:native, sm_121:variant=next3, or 'sm_121:native:except=hopper*'"
        raise UsageError(f"{text!r} is not a requirement", help=help_text)
    variant = load().variant(found[3]).name if found[3] else ""
    only, excepted = (
        tuple(pattern for part in re.findall(rf":{how}=([^:]+)", found[4]) for pattern in part.split(",") if pattern)
        for how in ("only", "except")
    )
    rest = text.removeprefix(found[1])
    return tuple(
        Requirement(gpu, found[2] == "native", found[2] == "fp4", variant, only, excepted, f"{gpu}{rest}")
        for gpu in _gpus(found[1])
    )


def _gpus(text: str) -> tuple[Arch, ...]:
    """Parse ``sm_121,sm_120`` or ``gb10``; UsageError for anything that is no known GPU's own plain architecture."""
    archs, names = known_gpus(), known().gpu
    every = [*names, *map(str, archs)]
    help_text = f"for example --for gb10, or --for sm_120,sm_121; known are {', '.join(every)}"
    parts = {part: _gpu_name(part) for part in elements(text)}
    strange = next((name for name in parts.values() if name not in every), text.lower())
    help_text = suggested(strange, every, help_text)
    found = requested(",".join(names.get(name, part) for part, name in parts.items()) or text, help_text)
    for arch in found:
        if arch not in archs:
            raise UsageError(f"{arch} is not a GPU", help=help_text)
    return found


def _gpu_name(text: str) -> str:
    """Return a GPU's name as known.toml writes it: ``rtx-5090`` of ``5090``, ``RTX5090`` or ``GeForce_RTX_5090``."""
    name = re.sub(r"^(?:nvidia-)?(?:geforce-)?", "", re.sub(r"[\s_]+", "-", text.strip().lower()))
    name = re.sub(r"^rtx-?(?=[\dp])", "", name)
    card = f"rtx-{re.sub(r'(?<=[0-9])(?=ti$)', '-', name)}"
    return card if card in known().gpu or re.fullmatch(r"\d{4}\S*|pro-.*", name) else text.strip().lower()


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
    found = re.fullmatch(r"(\d+)(?:\.(\d+)(?:\.\d+)*)?", text, re.ASCII)
    if not found or int(found[2] or 0) > _CUDA.get(int(found[1]), -1):
        known = listed([f"{number}.0 to {number}.{newest}" for number, newest in _CUDA.items()])
        raise UsageError(f"{text!r} is no known CUDA release", help=f"known are {known}")
    return f"{int(found[1])}.{int(found[2] or 0)}"


def examine_machine(question: Question, python: str = "") -> FindingsReport:
    """Look at this machine and a Python, as far as the GPUs go that are asked about, or that it has."""
    return machine.examine(Host.here(python), question.gpus if question.named else (), cuda_of(question))


def is_recorded(name: str, question: Question) -> bool:
    """Return whether the source of a target's release is meant, as ``fetch`` takes it: ``cutlass==4.2.1``.

    Where the index has wheels of that name, ``vllm==0.33.0``, only options of a build ask about the source.
    """
    target = load().targets.get(_release(name).partition("==")[0])
    if target is None or "==" not in name or Path(name).exists():
        return False
    return bool(question.asked or question.cuda) or all(archive.project != target.name for archive in target.archives)


def _release(name: str) -> str:
    """Return the release of a target that a name means: ``flashinfer==0.6.6`` of ``flashinfer-python==0.6.6``.

    Another name is returned as it is.
    """
    project, equal, version = name.partition("==")
    if not equal:
        return name
    own = canonicalize_name(project.strip())
    names = {canonicalize_name(one): target.name for target in load().targets.values() for one in _names_of(target)}
    return f"{names[own]}=={version.strip()}" if own in names else name


def _names_of(target: Target) -> tuple[str, ...]:
    """Return the names of a target: its own, and that of the package that is installed of it."""
    return (target.name, target.distribution) if target.distribution else (target.name,)


def find(name: str) -> Path | None:
    """Return the file or directory that is meant: a path, or the name of an installed package; None: an image's name.

    UsageError if it can be none of these.
    """
    if name.startswith(registry.SCHEME):
        return None
    try:
        if name and Path(name).exists():
            if not (Path(name).is_file() or Path(name).is_dir()):
                raise UsageError(f"{name} is no file and no directory", help="copy its content to a file, or use -")
            return Path(name)
    except OSError as error:
        raise UsageError(f"cannot look at {name}: {error.strerror}", help="check its permissions") from None
    if name.isidentifier() and (folder := Host.here().package(name)):
        return folder
    hint = _meant(name)
    if hint or not _IMAGE.fullmatch(name):
        otherwise = "name a file, a directory, an installed package or an image"
        raise UsageError(f"{name} does not exist", help=hint or otherwise)
    return None


# Example: vllm=0.33.0
_NEARLY_RELEASE = re.compile(r"([A-Za-z][\w.-]*?)(?:==?|-|@)v?(\d[\w.+]*)")


def _meant(name: str) -> str:
    """Return the advice about a name that is a package's: it is not installed, or its release is written otherwise."""
    found = _NEARLY_RELEASE.fullmatch(name)
    own = canonicalize_name(found[1] if found else name)
    if own not in _projects():
        return ""
    if found:
        return f"did you mean {own}=={found[2]}?"
    others = f"a release ({own}==VERSION), the Python that has it (fp4patch doctor .venv), or an image ({own}:latest)"
    return f"{name} is not installed in this Python; name {others}"


def _projects() -> frozenset[str]:
    """Return the names of the packages that doctor knows, and of the targets."""
    packages_ = {name for package in known().package for name in package.distributions}
    targets = {name for target in load().targets.values() for name in _names_of(target)}
    return frozenset(map(canonicalize_name, packages_ | targets))


def _is_python(name: str) -> bool:
    """Return whether a Python is meant: a program, or the directory of a virtual environment."""
    if (Path(name) / "pyvenv.cfg").is_file() or (Path(name) / "bin/python").is_file():
        return True
    return bool(re.fullmatch(r"python[\d.]*", Path(name).name) and shutil.which(name))


def examine(name: str, question: Question, *, on_step: OnProgress) -> DoctorReport:
    """Return what is known about one PATH: a Python, log, list, release, source tree, project, build, or code."""
    is_log = bool(messages.LOG.fullmatch(Path(name).name)) or _is_unnamed_text(Path(name))
    if (is_log or name.endswith((".yml", ".yaml"))) and (name == "-" or Path(name).is_file()):
        text = messages.text_of(name)
        if (releases := inputs.read(name, text)) is not None:
            return DoctorReport(lists=_examine_list(name, releases, question, on_step))
        if is_log:
            return _examine_text(name, text, question, on_step)
    if _is_python(name):
        _without_requirements(question, "a Python")
        return DoctorReport(examine_machine(question, name))
    if is_recorded(name, question):
        _without_requirements(question, "a release's source")
        return DoctorReport(trees=(recorded.examine_release(load().root, _release(name), question),))
    if not _is_published(name):
        return _examine_local(find(name), name, question, on_step)
    _without_effect(question, "a published wheel")
    return DoctorReport(binaries=tuple(_published(name, question, on_step)))


def _is_unnamed_text(path: Path) -> bool:
    """Return whether a path is that of a text whose name does not tell what it is."""
    try:
        return path.is_file() and not projects.is_read(path.name) and messages.is_text(path)
    except OSError:
        return False


def _examine_text(name: str, text: str, question: Question, on_step: OnProgress) -> DoctorReport:
    """Return the report on a log; of a text about a machine also its driver, its GPUs and its packages."""
    _without_requirements(question, "a log")
    _without_effect(question, "a log")
    found = machine_texts.read(text)
    if found is None:
        return DoctorReport(logs=(messages.examine(name, text, question.gpus if question.named else ()),))
    driver = found.driver
    own = question.gpus if question.named else gpus.sm12x(driver) or question.gpus
    refusals = [] if question.named else gpus.answers(driver)
    findings = [Finding(one.level, str(one.gpu), f"{one.because}: {one.verdict}", one.todo) for one in refusals]
    findings += machine_texts.findings(found)
    projects = _projects()
    known_ones = [one for one in found.releases if one.project in projects and not refusals]
    findings += [row for one in known_ones for row in _of_release(one, replace(question, gpus=own), on_step)]
    log = messages.examine(name, text, own)
    logs = (log,) if any(one.level in (Level.RED, Level.YELLOW) for one in log.findings) else ()
    return DoctorReport(lists=(FindingsReport(name, tuple(findings)),), logs=logs)


def _examine_recipe(path: Path | None, question: Question, on_step: OnProgress) -> DoctorReport:
    """Return the answers of the releases that a recipe installs: a Dockerfile, a script, a file of services."""
    if question.required or not (path and path.is_file()) or files.kind_of(path.name) not in _INSTALL:
        return DoctorReport()
    text = projects.text_of(path)
    releases = inputs.read_project(text) if path.suffix == ".toml" else recipe_releases.read(path.name, text)
    if not releases:
        return DoctorReport()
    return DoctorReport(lists=_examine_list(str(path), releases, question, on_step))


def _examine_local(path: Path | None, name: str, question: Question, on_step: OnProgress) -> DoctorReport:
    """Return the report on a file, a directory or an image: of an archive of sources, on the tree in it."""
    is_archive = path and path.is_file() and unpacked.ARCHIVE.fullmatch(path.name) and not question.required
    if path and is_archive and unpacked.is_of_sources(path, projects.SOURCES, _COMPILED):
        return _examine_archive(path, question, on_step)
    if path and path.name in (configured.COMMANDS, configured.NINJA) and path.is_file():
        _without_requirements(question, "a configured build")
        return DoctorReport(projects=(configured.examine(path.parent, question, cuda_of(question)),))
    if path and (checkpoint := model.read(path)):
        _without_requirements(question, "a model")
        _without_effect(question, "a model")
        return DoctorReport(lists=(FindingsReport(name, tuple(model.findings(checkpoint, question.gpus))),))
    of_releases = _examine_recipe(path, question, on_step)
    found = _examine_path(path, name, question, on_step)
    return (_without_idle(found) if of_releases.lists else found) + of_releases


def _examine_archive(archive: Path, question: Question, on_step: OnProgress) -> DoctorReport:
    """Return the report on the tree in an archive of sources, under the name that its directory has there."""
    with tempfile.TemporaryDirectory(prefix="fp4patch-") as work:
        place = Path(work).resolve() / re.sub(r"(\.tar)?\.\w+$", "", archive.name)
        place.mkdir()
        root = unpacked.unpack(archive, place)
        report = _examine_path(root, str(root), question, on_step)
        name = str(root.relative_to(place.parent if root == place else place))
        return _renamed(report, str(root), name)


_Value = TypeVar("_Value")


def _renamed(value: _Value, old: str, new: str) -> _Value:
    """Return a value in which a path has another name, in all of its texts."""
    made: object = value
    if isinstance(value, str) and not isinstance(value, Enum):
        made = value.replace(old, new)
    elif isinstance(value, tuple):
        made = tuple(_renamed(one, old, new) for one in value)
    elif is_dataclass(value) and not isinstance(value, (type, Arch)):
        made = replace(value, **{one.name: _renamed(getattr(value, one.name), old, new) for one in fields(value)})
    return cast("_Value", made)


def _without_idle(report: DoctorReport) -> DoctorReport:
    """Return a report without the projects of which nothing was read that says anything about targets."""
    kept = [
        project
        for project in report.projects
        if project.settings or project.statements or project.findings or any(one.evidence for one in project.answers)
    ]
    return replace(report, projects=tuple(kept))


def _examine_list(
    name: str, releases: Sequence[inputs.Release], question: Question, on_step: OnProgress
) -> tuple[FindingsReport, ...]:
    """Return the report on a list of packages: for each that doctor knows, the answer for each GPU; none on a recipe
    that installs none of them."""
    _without_requirements(question, "a list of packages")
    projects = _projects()
    known_ones = [one for one in releases if one.project in projects or one.image or one.why == inputs.ABSENT]
    known_ones += [one for one in releases if companions.is_companion(one.project)]
    if not known_ones and any(one.of or one.is_wanted for one in releases):
        return ()
    findings = [found for one in known_ones for found in _of_release(one, question, on_step)]
    if not any(one.of for one in releases):  # commands can follow each other, and lift the comparison
        findings += companions.mismatches(releases)
    if not findings:
        told = f"none of its {len(releases)} packages is one that doctor knows"
        findings = [Finding(Level.NONE, "packages", told, "name a release: PROJECT==VERSION")]
    return (FindingsReport(name, tuple(findings)),)


def _of_release(release: inputs.Release, question: Question, on_step: OnProgress) -> Iterator[Finding]:
    """Yield the answer for each GPU, or why a release is not judged."""
    subject = f"{release.project}=={release.version}" if release.version else release.project
    place = joined(release.file, f"line {release.line}", f"({release.of})" if release.of else "")
    if companions.is_companion(release.project):
        yield companions.finding(release, place, question.gpus)
        return
    gpus_ = tuple(gpu for gpu in question.gpus if ("aarch64" if gpu == GB10 else "x86_64") in release.machines)
    if release.why or not gpus_:
        help_text = f"name what is installed: its release ({release.project}==VERSION), its wheel, or the Python"
        help_text = "name that list too" if release.why == inputs.ABSENT else help_text
        help_text = f"name the image: fp4patch doctor {release.image}" if release.image else help_text
        why = release.why or f"it is installed on {listed(release.machines) or 'no Linux'} alone"
        yield Finding(Level.NONE, subject, f"{place}: not judged, {why}", help_text)
        return
    if release.is_built:
        yield from _of_one(release, subject, place, replace(question, gpus=gpus_), on_step)
        return
    # An index may have the wheel for one processor alone.
    for gpus_of in ([gpu for gpu in gpus_ if gpu != GB10], [gpu for gpu in gpus_ if gpu == GB10]):
        if gpus_of:
            yield from _of_one(release, subject, place, replace(question, gpus=tuple(gpus_of)), on_step)


def _of_one(release: inputs.Release, subject: str, place: str, own: Question, on_step: OnProgress) -> Iterator[Finding]:
    """Yield the answers of a release for GPUs of one processor; of one that is compiled, for all."""
    try:
        if release.is_built:
            asked = own.asked or _list(release.arch_list)
            own = replace(own, asked=asked, cuda=own.cuda or release.cuda)
            found = DoctorReport(trees=(recorded.examine_release(load().root, _release(subject), own),))
        else:
            found = examine(subject, own, on_step=on_step)
    except Fp4PatchError as error:
        yield Finding(Level.NONE, subject, f"{place}: not judged, {error.message}", error.help)
        return
    answers = [one for tree in found.trees for one in tree.answers]
    answers += [one for binary in found.binaries for one in binary.answers]
    for answer in answers:
        by = f", {place}" if release.of else ""
        told = f"{answer.gpu} {answer.said}: {answer.verdict.partition(' (')[0]}{by}"
        yield Finding(answer.level, subject, told, answer.todo)


def _examine_path(path: Path | None, name: str, question: Question, on_step: OnProgress) -> DoctorReport:
    """Return what is known about a file or a directory; without a path, about the image of that name."""
    is_file = bool(path and path.is_file())
    if question.required:
        _without_effect(question, "compiled code")
        return DoctorReport(binaries=(examine_binary(path, name, question, on_step=on_step),))
    trees = _trees(path) if path and not is_file else []
    found = status([tree.root for tree in trees], all_patches=question.patches) if trees else ()
    states = {tree.root: tree for tree in found}
    reports = tuple(judge(read_facts(tree, states[tree.root], [question]), question) for tree in trees)
    if path and trees and trees[0].root == path.resolve():
        texts = projects.build_texts(path)
        named = (*recipes.removals(texts), *projects.rewrites(texts, cuda_of(question)))
        beside = (ProjectReport(name, len(texts), (), {}, named, ()),) if named else ()
        return DoctorReport(None, reports, beside)
    cuda = cuda_of(question)
    project = None
    proof = None
    if path and configured.is_build(path):
        project = configured.examine(path, question, cuda)
    elif path and (not is_file or projects.is_read(path.name)):
        project = projects.examine(path, question, cuda, without=[tree.root for tree in trees])
    if not (trees or is_file or name.startswith(registry.SCHEME)):
        proof = inspection.of_directory(path) if path else inspection.of_image(name)
    binary = None
    if not (is_file and project):
        try:
            binary = examine_binary(path, name, question, on_step=on_step)
        except NothingCompiledError as error:
            if not (trees or proof or (project and project.read)):
                raise NothingCompiledError(error.message, help=_list_in(path) or error.help) from None
    is_idle = project and not (project.settings or project.statements or project.findings)
    if project and (not project.read or (is_idle and (trees or binary))):
        project = None
    if binary and not (project or trees):
        _without_effect(question, "compiled code")
    others = (project,) if project else (), (binary,) if binary else (), (proof,) if proof else ()
    return DoctorReport(None, reports, *others)


def _list_in(path: Path | None) -> str:
    """Return the advice to ask about a list of packages, if a directory has one."""
    if not (path and path.is_dir()):
        return ""
    texts = [file for file in sorted(path.glob("*.txt")) if file.is_file() and file.stat().st_size < inputs.LARGEST]
    found = next((file for file in texts if inputs.read(file.name, messages.text_of(str(file)))), None)
    return f"it has a list of packages: fp4patch doctor {found}" if found else ""


def _is_published(name: str) -> bool:
    """Return whether a requirement with a version is meant, or a wheel that is not on the disk."""
    if name.endswith(".whl"):
        return "/" not in name and not Path(name).exists()
    try:
        requirement = PackageRequirement(name)
    except InvalidRequirement:
        return False
    return bool(requirement.specifier) and not requirement.url and not Path(name).exists()


def _published(name: str, question: Question, on_step: OnProgress) -> Iterator[BinaryReport]:
    """Yield the report on a published wheel, for each kind of machine that the GPUs of the question are in."""
    from fp4patch.binaries import scan  # noqa: PLC0415 - it loads NumPy
    from fp4patch.sources import wheels  # noqa: PLC0415 - few questions need a client of the index

    machines: dict[str, list[Arch]] = {}
    for gpu in question.gpus:
        machines.setdefault("" if name.endswith(".whl") else "aarch64" if gpu == GB10 else "x86_64", []).append(gpu)
    for machine_name, own in machines.items():
        with wheels.published(name, machine_name, _projects(), on_step) as (file, content, size):
            found = known_defects.judged(scan.examine_wheel(file, content, size, gpus=own, progress=on_step), file)
            concerned = replace(question, required=tuple(one for one in question.required if one.gpu in own))
            rows = requirements.judge(found, concerned)
            yield replace(found, requirements=rows, variant=variant_of(file))


def _without_requirements(question: Question, what: str) -> None:
    """Raise UsageError for requirements of an input that has no compiled code."""
    if question.required:
        kinds = "a wheel, a release of a package (PROJECT==VERSION), a library, a package's directory or an image"
        raise UsageError(f"--require has no effect on {what}", help=f"it is about compiled code: name {kinds}")


def _without_effect(question: Question, what: str) -> None:
    """Raise UsageError for options that change nothing about an input."""
    given = (("--arch-list", question.asked), ("--cuda", question.cuda))
    if options := [name for name, value in given if value]:
        raise UsageError(f"{listed(options)} has no effect on {what}", help=f"leave {listed(options)} out")


def _trees(path: Path) -> list[Identified]:
    """Return the source tree in a directory with those that it contains; else the known trees below it."""
    catalog = load()
    try:
        return identify_all([path], catalog)
    except Refused:
        pass
    found: list[Path] = []
    root = path.resolve()
    for place, folders, _ in os.walk(root):
        here = Path(place)
        below = len(here.relative_to(root).parts)
        folders[:] = [] if below >= _DEEPEST else sorted(one for one in folders if not one.startswith("."))
        if below and any(is_at(here, target) for target in catalog.targets.values()):
            found.append(here)
            folders[:] = []
    return identify_all(found, catalog) if found else []


def examine_binary(path: Path | None, name: str, question: Question, *, on_step: OnProgress) -> BinaryReport:
    """Look into a file with device code or a directory of such; without a path, into the image of that name.

    It is judged for the GPUs that are asked about, else for those of this machine, else for both. Raises BinaryError.
    """
    from fp4patch.binaries import scan  # noqa: PLC0415 - it loads NumPy

    own = question.gpus if question.named else gpus.sm12x(ask_driver()) or question.gpus
    if path:
        found = scan.examine(path, gpus=own, progress=on_step)
    else:
        found = scan.examine_image(name, gpus=own, progress=on_step)
    installed = [info.name for info in path.parent.glob(f"{path.name}-*.dist-info")] if path and path.is_dir() else []
    variant = next(filter(None, map(variant_of, [name, *installed])), "")
    found = known_defects.judged(found, name)
    if not question.named:
        found = packages.with_driver(found, ask_driver())
    return replace(found, requirements=requirements.judge(found, question), variant=variant)


_IMAGE = re.compile(r"\w[\w.:-]*(/[\w.-]+)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")
"""``vllm/vllm-openai:v0.33.0``, ``localhost:5000/vllm``."""
