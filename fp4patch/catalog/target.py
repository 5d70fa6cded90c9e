"""A target: the contents of ``patches/<target>/target.toml``, which describe one kind of source tree."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from fp4patch.core.table import (
    SOME,
    ArchName,
    Commit,
    FileName,
    Glob,
    Manifest,
    Regex,
    Sha256,
    Specifier,
    TreePath,
    VersionPlace,
    VersionText,
    has_group,
)


@dataclass(frozen=True, kw_only=True)
class StatedVersion(Manifest):
    """Files that state the release. It is what the groups of ``pattern`` match, with points between them, in the first
    file that matches. The statement can be wrong: the anchors decide, and the version is only a hint."""

    files: tuple[TreePath, ...]
    pattern: Annotated[Regex, has_group]
    """A regular expression, searched with ``^`` and ``$`` at each line."""


@dataclass(frozen=True, kw_only=True)
class Archive(Manifest):
    """A pinned package-index file that holds a release's source tree."""

    version: VersionText
    """Upstream release that this archive's tree is used for."""
    project: str
    filename: FileName
    sha256: Sha256
    subtree: str
    """Directory inside the archive that becomes the tree; ``""`` for all of it (one leading directory is dropped)."""
    holds: str = ""
    """Exact contents, if they are not the tagged tree itself."""
    partial: bool = False
    """True if files that vLLM compiles are missing from the archive: an image then takes the commit from git."""


@dataclass(frozen=True, kw_only=True)
class Advice(Manifest):
    """Variant to use if the user names none. The first entry of a target that matches release and toolkit counts."""

    versions: Specifier = ""
    """Specifier (PEP 440) of releases; empty for all."""
    cuda: Specifier = ""
    """Specifier of CUDA releases (13.0); empty for all. Advice that has one does not match an unknown toolkit."""
    gpus: tuple[str, ...] = ()
    """GPUs that it is for; empty for all. It is left out where the user named others alone."""
    variant: str = ""
    """Name of the variant. Empty: none is needed."""
    because: str


@dataclass(frozen=True, kw_only=True)
class JitModule(Manifest):
    """A function of a tree's Python code that compiles one of its FP4 modules when the module is first used."""

    name: str
    """Name of the module: ``quantization``."""
    search: tuple[str, ...]
    """Candidate paths of its file, relative to the package; the first that exists counts."""
    function: str
    arguments: tuple[str, ...] = ()
    """Arguments that the tree calls it with; ``{gpu}`` is the GPU's number, ``121``."""


@dataclass(frozen=True, kw_only=True)
class Build(Manifest):
    """Method by which a tree's own build chooses the architectures of its FP4 kernels; ``fp4patch doctor`` evaluates
    it."""

    kind: Literal["cmake", "jit"]
    """Build system. ``cmake``: the CMakeLists.txt at the top, with PyTorch's names of architectures. ``jit``:
    FlashInfer's Python, which compiles on the GPU's own machine."""
    setting: str
    """Environment variable that names the architectures."""
    separator: str = ";"
    """Separator of the architectures in it."""
    form: str = ""
    """Regular expression that the whole value must match, where the build does not accept any list; empty for all."""
    otherwise: str = ""
    """Effect of another value."""
    lists: tuple[str, ...]
    """Usual values of it for SM120 and SM121, evaluated if the user gives no arch list. An empty value: it is not
    set."""
    cuda: tuple[VersionText, ...]
    """CUDA releases to evaluate if none is known."""
    kernels: Regex = ""
    """Regular expression, searched in the paths of sources, that selects the FP4 kernels for SM12x (only for cmake)."""
    converts: bool = True
    """False if these kernels need no FP4 instruction, so that a target without a suffix is enough for them."""
    modules: tuple[JitModule, ...] = ()
    """Modules that hold the FP4 kernels for SM12x (only for jit). The first one represents the others in summaries."""


@dataclass(frozen=True, kw_only=True)
class Gate(Manifest):
    """Condition by which a header lets a GPU use the FP4 conversion instruction."""

    gpu: ArchName
    """GPU: ``sm_121``."""
    file: TreePath
    defines: str
    """Macro that enables the instruction."""
    otherwise: str
    """Effect of the header on a target for which it does not define the macro."""


@dataclass(frozen=True, kw_only=True)
class Defect(Manifest):
    """A known defect of releases on some GPUs that no condition of the build shows; ``fp4patch doctor`` reports it."""

    level: Literal["yellow", "red"]
    gpus: Annotated[tuple[ArchName, ...], SOME]
    """GPUs that have it: ``sm_121``."""
    versions: Specifier = ""
    """Specifier (PEP 440) of the releases that have it. Empty: ``patch`` alone decides."""
    patch: str = ""
    """Patch of the target that repairs it: a tree in which the patch can be applied has the defect."""
    subject: str
    found: str
    """Effect of the defect."""
    remedy: str = ""
    """Recommended action. Empty: the variant that is recommended for the release."""
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Contained(Manifest):
    """Another target's tree inside a tree. Commands on the outer tree also process the inner one, in the same
    transaction."""

    target: str
    at: tuple[TreePath, ...]
    """Directories, relative to the tree, in which it can be located."""


@dataclass(frozen=True, kw_only=True)
class Pin(Manifest):
    """The release of another target's tree that a tree is built with, unless another one is given to the build."""

    target: str
    file: TreePath
    pattern: Annotated[Regex, has_group]
    """A regular expression that is searched in the file. Its group is the release."""


@dataclass(frozen=True, kw_only=True)
class Bypass(Manifest):
    """Compiled code that is used instead of a tree's sources. No edit of the sources changes it."""

    paths: tuple[str, ...]
    """Globs, relative to the tree."""
    because: str
    """Message to print if such code exists: its meaning, and the recommended action."""


class Layout(NamedTuple):
    """Where a tree has the files of upstream's repository."""

    names: Mapping[str, str]
    """Beginnings of its paths, and what they are in the repository: the first that fits counts. Empty: the same."""

    def place(self, path: str) -> str:
        """Return the path in the tree of a file of the repository; a path that nothing fits is the tree's own."""
        here, there = next(((here, there) for here, there in self.names.items() if path.startswith(there)), ("", ""))
        return here + path.removeprefix(there)

    def in_repository(self, path: str) -> str:
        """Return the path in the repository of a file of the tree."""
        begin = next((begin for begin in self.names if path.startswith(begin)), "")
        return self.names.get(begin, "") + path.removeprefix(begin)

    def has_place(self, path: str) -> bool:
        """Tell whether a file of the repository has a place in the tree: tests have none in an installed package."""
        ways = self.names.items()
        return not ways or any(path.startswith(there) or (here and path.startswith(here)) for here, there in ways)


AS_UPSTREAM = Layout({})
"""The layout of a checkout."""
Marks = Annotated[tuple[TreePath, ...], SOME]
"""Files that together identify a directory."""


@dataclass(frozen=True, kw_only=True)
class Target(Manifest):
    """A kind of source tree: how to recognise it, read its version, compile against it and fetch it."""

    name: str
    title: str
    marks: Marks
    """Files that together identify a directory as a tree of this kind."""
    other_marks: tuple[Marks, ...] = ()
    """The same for each other layout: a checkout, where ``marks`` are those of an installed package."""
    repository: dict[str, str] = field(default_factory=dict)
    """Beginnings of paths in an archive or an installed package, and what they are in upstream's repository, where that
    has another layout: ``{"data/csrc/" = "csrc/"}``. The first that fits a path counts. Patches name files as the
    repository does, and are for both. A tree has these paths if marks of its layout begin so."""
    version: StatedVersion
    include: tuple[str, ...]
    """Include directories, relative to the tree, for the compilation of a probe."""
    compile: tuple[str, ...] = ()
    """Further compiler flags for its probes."""
    git: str
    tag: Annotated[str, VersionPlace] = ""
    """Pattern of the tag: ``v{version}``. ``{release}`` is the version without a ``.0`` at its end: ``v2.8``. Empty:
    releases have no tag, and the commits in ``commits`` are fetched."""
    archives: tuple[Archive, ...] = ()
    """One for each release, the oldest first."""
    commits: dict[VersionText, Commit] = field(default_factory=dict)
    """Commit (40 hex digits) of a release, which its tag must name, for releases that no archive holds completely."""
    wheels: str = ""
    """Project of the package index that has wheels of the same releases, where no archive holds the sources."""
    whole: tuple[str, ...] = ()
    """Paths that vLLM's build needs and that are missing from a partial archive of the release."""
    advice: tuple[Advice, ...] = ()
    telling: tuple[str, ...] = ()
    """Files whose contents identify the release, independent of the version that a tree states. Not every release has
    all of them."""
    telling_in: tuple[str, ...] = ("",)
    """Directories of these files in each layout of a tree, relative to it, with a slash at the end."""
    build: Build | None = None
    gates: tuple[Gate, ...] = ()
    defects: tuple[Defect, ...] = ()
    contains: tuple[Contained, ...] = ()
    pins: tuple[Pin, ...] = ()
    distribution: str = ""
    """Project whose installed package the tree may be."""
    bypasses: tuple[Bypass, ...] = ()
    touches: tuple[Glob, ...] = ()
    """Globs of files that patches of this target have edited, beside those of its present patches.

    A receipt may name only such files: a patch that is removed leaves its globs here, so that its receipts can still be
    reverted.
    """

    def archive(self, version: str) -> Archive | None:
        """Return the pinned archive whose tree is used for that release, if there is one."""
        return next((archive for archive in self.archives if archive.version == version), None)

    def tag_of(self, version: str) -> str:
        """Return the git tag of a release, or its commit if releases have no tag; empty if it has neither."""
        if not self.tag:
            return self.commits.get(version, "")
        return self.tag.format(version=version, release=version.removesuffix(".0"))

    def layout(self, has: Callable[[str], bool]) -> Layout:
        """Return the layout of a tree, of which ``has`` tells whether a file is in it."""
        marks = next((marks for marks in (self.marks, *self.other_marks) if all(map(has, marks))), ())
        is_other = any(begin and mark.startswith(begin) for begin in self.repository for mark in marks)
        return Layout(self.repository) if is_other else AS_UPSTREAM

    def layout_at(self, root: Path) -> Layout:
        """Return the layout of the tree in a directory."""
        return self.layout(lambda path: (root / path).is_file())

    def in_layouts(self, globs: Iterable[str]) -> tuple[str, ...]:
        """Return globs of files of upstream's repository, and ahead of each one those of the same files elsewhere."""
        return tuple(
            place
            for glob in globs
            for place in (
                *(here + glob.removeprefix(there) for here, there in self.repository.items() if glob.startswith(there)),
                glob,
            )
        )

    def missing(self, tree: Path) -> list[str]:
        """Return the missing marks of the layout with the fewest missing; none if a tree of this kind is there."""
        layouts = (self.marks, *self.other_marks)
        return min(([mark for mark in marks if not (tree / mark).is_file()] for marks in layouts), key=len)
