"""Values about images: the request, and the results of a build and of checking a proof."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fp4patch.catalog.outside import OutsidePatch
from fp4patch.catalog.variant import TorchPin
from fp4patch.core.arch import Arch
from fp4patch.core.document import Document, Report, shown
from fp4patch.core.results import OnTree, Verdict, overall

PRODUCT = "vllm"
"""Target whose package an image runs; its release names the image."""

PROOF = "/opt/fp4patch/proof"
"""Directory of the proof inside an image."""


class Stage(StrEnum):
    """Stages of the Dockerfile, in the order in which they build on one another."""

    TOOLKIT = "toolkit"
    SOURCES = "sources"
    PROOF = "proof"
    KERNELS = "kernels"
    PART = "part"
    WHEEL = "wheel"
    RUNTIME = "runtime"

    @property
    def compiles(self) -> bool:
        """True if the stage compiles vLLM or a part of it, which needs whole trees."""
        return self in (Stage.KERNELS, Stage.PART, Stage.WHEEL, Stage.RUNTIME)


@dataclass(frozen=True)
class Architectures:
    """Requested architectures, and the architectures and GPUs that follow from them."""

    asked: tuple[Arch, ...]
    judged: tuple[Arch, ...]
    """Architectures that the variant has rules for; verify compiles for these."""
    gpus: tuple[Arch, ...]
    """GPUs that the built files must run on."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """Source of one tree of the image: a release, or a local directory."""

    version: str = ""
    """Version of a release; empty for a directory."""
    folder: str = ""
    """Build context of that name. Empty: the release is fetched in the build."""
    pin: Mapping[str, str] = field(default_factory=dict)
    """Known facts for ``pins.json``: ``version``, ``archive``, ``sha256``, ``git``, ``ref``, ``commit``."""
    whole: bool = False
    """True if the release must come from git, since its archive holds only a part."""


@dataclass(frozen=True)
class BuildxOptions:
    """Words that the user hands on to ``docker buildx build``, and what they decide here."""

    words: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Build arguments in the place of ours: ``BASE_IMAGE``, ``RUNTIME_IMAGE``, ``TORCH_VERSION``; others are added."""
    platforms: tuple[str, ...] = ()
    """Platforms: ``linux/arm64``. Empty: the engine's own."""
    tags: tuple[str, ...] = ()
    builder: str = ""
    push: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """All that decides what is built, with every default filled in."""

    variant: str
    patches: tuple[str, ...]
    """``cutlass/e2m1-guard 1``."""
    archs: Architectures
    trees: Mapping[str, Source]
    """Source of each tree, by its target's name."""
    outside: tuple[OutsidePatch, ...] = ()
    """Patches outside of the catalog."""
    with_files: Mapping[str, bytes] = field(default_factory=dict)
    """The directories that they are read from, by path."""
    torch: TorchPin
    cuda: str
    base_image: str
    runtime_image: str
    target: Stage = Stage.RUNTIME
    output: Path | None = None
    """Directory for files; None: the result is an image."""
    buildx: BuildxOptions = BuildxOptions()


@dataclass(frozen=True)
class DryRun(Report):
    """The command that a build would run, and the files that it would send."""

    command: tuple[str, ...]
    context: str
    """Directory of the build context."""
    written: bool
    """True if the context exists already."""
    files: Mapping[str, int]
    """Files of the context, with their sizes in bytes."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Built(Report):
    """Result of a build."""

    image: str
    """Image id, or digest of the pushed image: ``sha256:…``. Empty if files were written."""
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    output: str
    """Directory of ``--output``."""
    seconds: float


@dataclass(frozen=True)
class Statement(Document):
    """One statement of an image or a proof, checked again: its subject, its verdict and a description of the result."""

    subject: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class ProofReport(Document):
    """What an image, or a directory that a build wrote, states about itself, and the results of checking it."""

    subject: str
    """The image or directory that was named."""
    image: str
    """Image id; empty for a directory."""
    labels: Mapping[str, str]
    """Labels ``io.fp4patch.*`` of the image; none for a directory."""
    pins: Mapping[str, Any]
    """Inputs of the build: ``pins.json`` of the proof."""
    statements: tuple[Statement, ...]
    """None if labels and proof could not be read."""
    notes: tuple[str, ...] = ()

    @property
    @shown()
    def verdict(self) -> OnTree:
        """NOTHING if nothing was checked; PASS if no check failed."""
        return overall(statement.verdict for statement in self.statements) if self.statements else Verdict.NOTHING
