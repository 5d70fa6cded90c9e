"""Releases that a recipe installs: those of its images, of ``pip install``, and of what it clones by git and builds.

A Dockerfile, a script or a YAML file gives ``Release`` values, as a list of packages does. What is not certain (a
condition, another index, a tree that a command changes) is stated as the reason why a release is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from packaging.utils import canonicalize_name
from packaging.version import Version

from fp4patch.binaries.known_programs import known
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Target
from fp4patch.core.cuda import FOR_GB10
from fp4patch.doctor import inputs
from fp4patch.doctor.inputs import Release
from fp4patch.doctor.readings import files
from fp4patch.doctor.readings.commands import packages
from fp4patch.doctor.readings.reading import Command, Image, Read
from fp4patch.doctor.settings import cuda_of_image

OF_ANOTHER_STAGE = "the base of a stage from which the last one is not made"
OTHER_BUILD = "its tag names another build than that of the release's wheel"
NO_RELEASE = "its tag is no release"
UNKNOWN_IMAGE = "an image of which doctor knows no release"

# Example: docker.io/vllm/vllm-openai:v0.15.1-x86_64@sha256:0123
_IMAGE = re.compile(r"(?:(?:index\.)?docker\.io/)?([^\s:@]+)(?::([^@\s]*))?(?:@sha256:[0-9a-f]+)?")
# Example: v0.15.1-x86_64
_TAG = re.compile(r"v?(\d+(?:\.\d+)+(?:\.?(?:post|rc)\d+)?)(?:-(x86_64|aarch64|amd64|arm64))?")
_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
# Example: git+https://github.com/vllm-project/vllm.git@v0.17.1
_REPOSITORY = re.compile(
    r"(?:git\+)?(?:https?://|ssh://git@|git@|git://)(?P<at>[\w.-]+[:/](?P<owner>[\w.-]+)/(?P<name>[\w.-]+?))"
    r"(?:\.git)?/?(?:@(?P<ref>[^@#\s]+))?(?:#\S*)?"
)
_TAKES_WORD = frozenset(
    ("-b", "--branch", "--depth", "-o", "--origin", "-c", "--config", "--reference", "-j", "--jobs")
)
"""Options of git that take the next word."""
_CHANGES = frozenset(("apply", "am", "cherry-pick", "merge", "revert", "pull", "rebase"))
"""Commands of git after which a tree is not that of its tag."""
_INDEXES = re.compile(r"-i|--index-url|--extra-index-url|-f|--find-links|--index|--default-index")
_INDEX_VARIABLES = re.compile(r"(?:PIP|UV)_(?:EXTRA_INDEX_URL|INDEX_URL|INDEX|DEFAULT_INDEX|FIND_LINKS)")
_PRECOMPILED = re.compile(r"\w+_USE_PRECOMPILED")
_OWN_SCRIPTS = ("setup.py", "use_existing_torch.py")
"""Scripts of a tree that change no source of a kernel."""
_PYTHON = re.compile(r"python[\d.]*")


@dataclass
class _Clone:
    """A repository that a recipe has cloned."""

    target: Target
    line: int
    ref: str
    """Branch, tag or commit; empty: the newest."""
    unknown: str = ""
    """Why it is not known what it is."""
    change: str = ""
    """The first command that changes the tree."""
    builds: Command | None = None


@dataclass
class _Recipe:
    clones: dict[str, _Clone] = field(default_factory=dict)
    """Clones by the names of their directories."""
    found: dict[str, Release] = field(default_factory=dict)
    """Releases by their projects: the last one is what stays installed."""
    replaced: set[tuple[str, str]] = field(default_factory=set)
    """Projects that are installed into an image, each with its name."""


def read(path: str, text: str) -> tuple[Release, ...] | None:
    """Return the releases that a recipe installs; None: it is no file that installs any, or it is not read."""
    found = files.read_all(path, text, Version(FOR_GB10))
    return releases(found) if isinstance(found, Read) else None


def releases(found: Read) -> tuple[Release, ...]:
    """Return the releases of the images and commands of a recipe, each under its normalized name."""
    recipe = _Recipe()
    run = (image for command in found.commands for image in _run(command))
    of_images = list(filter(None, map(_of_image, (*found.images, *run))))
    for command in found.commands:
        if command.program == "git":
            _git(recipe, command)
        elif (named := packages(command)) is not None:
            _installed(recipe, command, named)
        else:
            _other(recipe, command)
    for clone in recipe.clones.values():
        # What is cloned and not built here may still be built by a script that is not read.
        release = _of_clone(clone)
        recipe.found[release.project] = release
        recipe.replaced |= {(release.project, clone.builds.image)} if clone.builds else set()
    kept = (one for one in of_images if (one.project, one.image) not in recipe.replaced)
    return (*kept, *recipe.found.values())


def _run(command: Command) -> Iterator[Image]:
    """Yield the image of a ``docker run``, if it is one of those whose tags are releases."""
    if command.program in ("docker", "podman", "nerdctl"):
        for word in command.words[2:]:
            matched = _IMAGE.fullmatch(word.text)
            if matched and matched[1] in _projects_of_images():
                yield Image(word, command.line)
                return


def _of_image(image: Image) -> Release | None:
    """Return the release of an image; None of one that holds a system or a toolkit alone."""
    text = image.name.text
    matched = _IMAGE.fullmatch(text)
    own, tag = (matched[1], matched[2] or "") if matched else (text, "")
    project = _projects_of_images().get(own, "")
    of = f"image {text}"
    if not project:
        is_base = "/" not in own or own.startswith(("nvidia/cuda", "ghcr.io/astral-sh/uv")) or own == "scratch"
        is_base = is_base or (cuda_of_image(text) and not image.name.unknown)
        why = UNKNOWN_IMAGE if not image.name.unknown else f"{image.name.unknown} is not known"
        return (
            None
            if is_base
            else Release(text, "", image.line, why if image.final else OF_ANOTHER_STAGE, of=of, image=text)
        )
    if not image.final:
        return Release(project, "", image.line, OF_ANOTHER_STAGE, of=of, image=text)
    release = _TAG.fullmatch(tag)
    if image.name.unknown or not release:
        starts = not image.name.unknown and _TAG.match(tag)
        return Release(project, "", image.line, OTHER_BUILD if starts else NO_RELEASE, of=of, image=text)
    processor = _PROCESSORS.get(release[2], release[2])
    machines = (processor,) if processor else inputs.MACHINES
    return Release(project, release[1], image.line, machines=machines, of=of, image=text)


@cache
def _projects_of_images() -> dict[str, str]:
    return {image: package.distributions[0] for package in known().package for image in package.images}


@cache
def _repositories() -> dict[str, Target]:
    """Return the targets by their repositories: ``github.com/vllm-project/vllm``."""
    found = {_REPOSITORY.fullmatch(target.git): target for target in load().targets.values() if target.git}
    return {matched["at"].replace(":", "/").lower(): target for matched, target in found.items() if matched}


def _target_of(url: str) -> tuple[Target, str, str] | None:
    """Return the target of a repository, its reference, and why it is another one; None: no target has such a name."""
    matched = _REPOSITORY.fullmatch(url)
    if not matched:
        return None
    at = matched["at"].replace(":", "/").lower()
    for own, target in _repositories().items():
        if at == own:
            return target, matched["ref"] or "", ""
        if at.rpartition("/")[2] == own.rpartition("/")[2]:
            return target, matched["ref"] or "", f"{matched['owner']}/{matched['name']} is a copy of the repository"
    return None


def _git(recipe: _Recipe, command: Command) -> None:
    words, folder = [word.text for word in command.words[1:]], command.folder
    while len(words) > 1 and words[0] in ("-C", "-c"):
        folder = words[1] if words[0] == "-C" else folder
        words = words[2:]
    name, *rest = words or [""]
    options, plain = _split(rest)
    if name == "clone":
        url = next((word for word in plain if _REPOSITORY.fullmatch(word)), "")
        if known_one := _target_of(url):
            target, _, why = known_one
            after = plain[plain.index(url) + 1 :]
            place = (after[0] if after else _name_of(url)).rstrip("/")
            own = folder.rstrip("/").rpartition("/")[2] if place == "." else place.rpartition("/")[2]
            ref = options.get("--branch") or options.get("-b") or ""
            recipe.clones[own] = _Clone(target, command.line, ref, why or _doubt(command))
        return
    clone = _clone_at(recipe, folder)
    if clone is None:
        return
    if name in ("checkout", "switch", "reset"):
        ref = plain[-1] if plain and "--" not in rest else ""
        if "--" in rest:
            clone.change = clone.change or f"line {command.line}: {command}"
        elif ref not in ("", "HEAD", "."):
            clone.ref, clone.line = re.sub(r"^(?:refs/)?tags/", "", ref), command.line
            clone.unknown = clone.unknown or _doubt(command)
    elif name in _CHANGES:
        clone.change = clone.change or f"line {command.line}: {command}"


def _doubt(command: Command) -> str:
    """Return why it is not known what a command does; empty if it is."""
    unknown = next((word.unknown for word in command.words if word.unknown), "")
    return inputs.CONDITION if command.condition else f"{unknown} is not known" if unknown else ""


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of git with their values, and the other words."""
    options, plain, rest = dict[str, str](), list[str](), iter(words)
    for word in rest:
        if word in _TAKES_WORD:
            options[word] = next(rest, "")
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            options[name] = value
        else:
            plain.append(word)
    return options, plain


def _name_of(url: str) -> str:
    matched = _REPOSITORY.fullmatch(url)
    return matched["name"] if matched else ""


def _clone_at(recipe: _Recipe, path: str) -> _Clone | None:
    """Return the clone that a path leads into."""
    return next((recipe.clones[part] for part in reversed(path.split("/")) if part in recipe.clones), None)


def _installed(recipe: _Recipe, command: Command, named: Sequence[str]) -> None:
    words = [word.text for word in command.words]
    given = [
        name
        for name, one in command.environment.items()
        if _INDEX_VARIABLES.fullmatch(name) and not _is_pypi(one.value.text)
    ]
    given += [word for word, after in zip(words, (*words[1:], ""), strict=True) if _is_index(word, after)]
    why = inputs.CONDITION if command.condition else inputs.INDEX if given else ""
    for text in named or ((".",) if words[1:2] == ["build"] else ()):
        url = text.partition(" @ ")[2].strip() or text
        if text.startswith("requirements of "):
            continue
        if known_one := _target_of(url):
            target, ref, other = known_one
            recipe.clones[url] = _Clone(target, command.line, ref, other or _doubt(command), builds=command)
        elif text.startswith((".", "/", "~")) or "/" in text:
            if clone_there := _clone_at(recipe, text if text.startswith("/") else f"{command.folder}/{text}"):
                clone_there.builds = clone_there.builds or command
            elif release := inputs.requirement(text, command.line):
                _add(recipe, release, command)
        elif release := inputs.requirement(text, command.line) or inputs.requirement(
            re.sub(r"\s*[=<>!~].*", "", text), command.line
        ):
            _add(recipe, replace(release, version="", why=release.why or why) if why else release, command)


def _is_index(word: str, after: str) -> bool:
    """Return whether an option names an index that is not PyPI."""
    option, _, value = word.partition("=")
    return bool(_INDEXES.fullmatch(option)) and not _is_pypi(value or after)


def _is_pypi(address: str) -> bool:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - few recipes name an index

    return address.rstrip("/") == PYPI_SIMPLE_ENDPOINT.rstrip("/")


def _add(recipe: _Recipe, release: Release, command: Command) -> None:
    unknown = next(
        (word.unknown for word in command.words if word.unknown and release.project in word.text.lower()), ""
    )
    if unknown:
        release = replace(release, version="", why=f"{unknown} is not known")
    recipe.replaced |= {(release.project, command.image)}
    recipe.found.pop(release.project, None)
    recipe.found[release.project] = replace(release, of=str(command))


def _other(recipe: _Recipe, command: Command) -> None:
    """Take note of a command that builds a clone, or changes it."""
    words = [word.text for word in command.words]
    clone = _clone_at(recipe, command.folder)
    if _PYTHON.fullmatch(command.program):
        script = next((word for word in words[1:] if word.endswith(".py")), "")
        if clone and (script.endswith("setup.py") or words[1:3] == ["-m", "build"]):
            clone.builds = clone.builds or command
        elif clone and script and script.rpartition("/")[2] not in _OWN_SCRIPTS:
            clone.change = clone.change or f"line {command.line}: {command}"
        return
    edits = command.program == "patch" or (
        command.program in ("sed", "perl") and any(re.match(r"-\w*i|--in-place", word) for word in words[1:])
    )
    if edits:
        places = (_clone_at(recipe, word) for word in words[1:] if "/" in word)
        if changed := clone or next(filter(None, places), None):
            changed.change = changed.change or f"line {command.line}: {command}"


def _of_clone(clone: _Clone) -> Release:
    """Return the release that a clone is of, with the architectures for which it is compiled."""
    target, version = clone.target, _version(clone.target, clone.ref)
    why = clone.unknown or ("" if version else f"{clone.ref or 'the newest commit'} is no release")
    setting, cuda = "", ""
    if clone.builds and not why:
        cuda = cuda_of_image(clone.builds.image)
        environment = clone.builds.environment
        if any(map(_PRECOMPILED.fullmatch, environment)):
            why = "its machine code is downloaded, and not compiled"
        elif target.build and (variable := environment.get(target.build.setting)):
            setting = variable.value.text
            why = f"{variable.value.unknown} is not known" if variable.value.unknown else ""
    if clone.change and not why:
        why = f"its tree is changed by {clone.change}"
    return Release(
        canonicalize_name(target.distribution or target.name),
        "" if why else version,
        clone.line,
        why,
        of=f"git {clone.ref or 'clone'}",
        is_built=True,
        arch_list=setting,
        cuda=cuda,
    )


def _version(target: Target, ref: str) -> str:
    """Return the release of a tag or of a commit; empty if it is none."""
    recorded = {target.tag_of(archive.version): archive.version for archive in target.archives}
    recorded |= {commit: version for version, commit in target.commits.items()}
    plain = re.fullmatch(r"v(\d+(?:\.\d+)+(?:\.?(?:post|rc)\d+)?)", ref)
    return recorded.get(ref) or (plain[1] if plain else "")
