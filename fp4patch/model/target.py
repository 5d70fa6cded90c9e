"""A target: what ``patches/<target>/target.toml`` says of one kind of source tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from fp4patch.model.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class VersionMacros(Manifest):
    """A header that states the release as three macros. It may lie: anchors decide, the version advises."""

    file: str
    major: str
    minor: str
    patch: str


@dataclass(frozen=True, kw_only=True)
class VersionPattern(Manifest):
    """Files that state the release as text. The first file that has a match of ``pattern`` says it, as group 1."""

    files: tuple[str, ...]
    pattern: str
    """A regular expression, searched with ``^`` and ``$`` at each line."""


@dataclass(frozen=True, kw_only=True)
class Archive(Manifest):
    """A pinned package-index file that holds a release's source tree."""

    version: str
    """The upstream release that this archive's tree serves as."""
    project: str
    filename: str
    sha256: str
    subtree: str
    """The folder inside the archive that becomes the tree; ``""`` for all of it (one leading folder is dropped)."""
    holds: str = ""
    """What exactly is inside, where it is not the tagged tree itself."""
    partial: bool = False
    """Whether it lacks files of the release that vLLM compiles: an image then takes the commit from git."""


@dataclass(frozen=True, kw_only=True)
class Series(Manifest):
    """Pinned archives of one project whose names differ in the release alone."""

    project: str
    filename: str
    """``vllm-{version}.tar.gz``."""
    sha256: dict[str, str]
    """By release, from the oldest on."""
    subtree: str
    """As in :class:`Archive`, and so the next two."""
    holds: str = ""
    partial: bool = False


@dataclass(frozen=True, kw_only=True)
class Advice(Manifest):
    """Which variant to take when none is named. The first of a target's that fits release and toolkit counts."""

    versions: str = ""
    """A specifier (PEP 440) of releases; empty for all."""
    cuda: str = ""
    """A specifier of CUDA releases (13.0); empty for all. Advice that has one does not fit an unknown toolkit."""
    variant: str = ""
    """Empty: none is needed."""
    because: str


@dataclass(frozen=True, kw_only=True)
class JitModule(Manifest):
    """A function of a tree's Python that has one of its FP4 modules compiled, when it is first used."""

    name: str
    """``quantization``."""
    search: tuple[str, ...]
    """Its file, relative to the package; the first that is there."""
    function: str
    arguments: tuple[str, ...] = ()
    """What the tree calls it with; ``{gpu}`` is the GPU's number, ``121``."""


@dataclass(frozen=True, kw_only=True)
class Build(Manifest):
    """How a tree's own build chooses the architectures of its FP4 kernels; ``fp4patch doctor`` evaluates it."""

    kind: Literal["cmake", "jit"]
    """``cmake``: the CMakeLists.txt at the top, with PyTorch's way of naming architectures. ``jit``: FlashInfer's
    Python, which compiles on the GPU's own machine."""
    setting: str
    """The environment variable that names the architectures."""
    separator: str = ";"
    """What stands between them."""
    lists: tuple[str, ...]
    """What people set it to, for SM120 and SM121; looked at where no other list is asked for. Empty: it is not set."""
    cuda: tuple[str, ...]
    """CUDA releases to look at where none is known."""
    kernels: str = ""
    """For cmake: a regular expression, searched in a source's path: those that hold the FP4 kernels for SM12x."""
    modules: tuple[JitModule, ...] = ()
    """For jit: those that hold the FP4 kernels for SM12x, the one that speaks for the others first."""


@dataclass(frozen=True, kw_only=True)
class Gate(Manifest):
    """The condition by which a header lets a GPU use the FP4 conversion instruction."""

    gpu: str
    """``sm_121``."""
    file: str
    defines: str
    """The macro that turns the instruction on."""
    operands: tuple[str, ...]
    """What the ``#if`` conditions that define it must name for this GPU."""
    conditions: int
    otherwise: str
    """What the header does for this GPU without it."""


@dataclass(frozen=True, kw_only=True)
class Contained(Manifest):
    """Another target's tree inside a tree: what is done to the one is done to the other, in the same transaction."""

    target: str
    at: tuple[str, ...]
    """Folders, relative to the tree, where it may lie."""


@dataclass(frozen=True, kw_only=True)
class Bypass(Manifest):
    """Compiled code that is used in the place of a tree's sources. What it was made of, no edit reaches."""

    paths: tuple[str, ...]
    """Globs; relative to the tree, or to the home folder if they begin with ``~``. ``{version}`` is the tree's."""
    instead: str = ""
    """The environment variable that names another folder in the place of the home folder."""
    because: str
    """Said where one is there: what it means, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Target(Manifest):
    """A kind of source tree: how to recognise it, read its version, compile against it and fetch it."""

    name: str
    title: str
    marks: tuple[str, ...]
    """Files that together make a folder a tree of this kind."""
    other_marks: tuple[tuple[str, ...], ...] = ()
    """The same for each other layout of it: a checkout, where ``marks`` are those of an installed package."""
    version: VersionMacros | VersionPattern
    include: tuple[str, ...]
    """Include folders, relative to the tree, to compile a probe against it."""
    compile: tuple[str, ...] = ()
    """Further compiler flags for its probes."""
    found_in: tuple[str, ...] = ()
    """Where a tree of this kind lies below other people's folders; used to say 'did you mean'."""
    git: str
    tag: str
    """``v{version}``."""
    archives: tuple[Archive, ...] = ()
    series: tuple[Series, ...] = ()
    commits: dict[str, str] = field(default_factory=dict)
    """Releases that no archive holds, or none whole, by the commit (40 hex digits) that their tag must name."""
    whole: tuple[str, ...] = ()
    """Paths of the release's tree that a partial archive lacks, and that vLLM's build needs."""
    advice: tuple[Advice, ...] = ()
    telling: tuple[str, ...] = ()
    """Files by whose content releases are told apart, whatever a tree states. Not every release has all of them."""
    telling_in: tuple[str, ...] = ("",)
    """Where these lie in each layout of a tree: folders, relative to it, with a slash at the end."""
    build: Build | None = None
    gates: tuple[Gate, ...] = ()
    contains: tuple[Contained, ...] = ()
    distribution: str = ""
    """The project whose installed package the tree may be: its RECORD, beside the tree, states each file's hash."""
    bypasses: tuple[Bypass, ...] = ()
    touches: tuple[str, ...] = ()
    """Globs of files that patches of this target have been about, beside those of its present patches.

    A receipt may name only such files: a patch that is removed leaves its globs here, so that its receipts can still be
    reverted."""

    @property
    def pinned(self) -> tuple[Archive, ...]:
        """All pinned archives, one for each release, those of a series one by one."""
        return self.archives + tuple(
            Archive(
                version=version,
                project=series.project,
                filename=series.filename.replace("{version}", version),
                sha256=digest,
                subtree=series.subtree,
                holds=series.holds,
                partial=series.partial,
            )
            for series in self.series
            for version, digest in series.sha256.items()
        )

    def archive(self, version: str) -> Archive | None:
        """Return the pinned archive whose tree serves as that release, if there is one."""
        return next((archive for archive in self.pinned if archive.version == version), None)

    def missing(self, has: Callable[[str], bool]) -> list[str]:
        """The marks that are not there, of the layout that most are there of; none: this is a tree of this kind."""
        return min(([mark for mark in marks if not has(mark)] for marks in (self.marks, *self.other_marks)), key=len)
