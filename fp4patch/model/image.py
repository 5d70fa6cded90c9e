"""The nouns of images: what is asked for, what an engine is, what a build and an inspection came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fp4patch.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fp4patch.model.arch import Arch

PROOF = "/opt/fp4patch/proof"
"""Where an image holds its proof."""


class Stage(StrEnum):
    """The stages of the Dockerfile, in the order in which they build on one another, and two that only hold files."""

    TOOLKIT = "toolkit"
    SOURCES = "sources"
    PROOF = "proof"
    KERNELS = "kernels"
    PART = "part"
    WHEEL = "wheel"
    RUNTIME = "runtime"
    PROOF_EXPORT = "proof-export"
    PART_EXPORT = "part-export"
    WHEEL_EXPORT = "wheel-export"

    @property
    def proven(self) -> bool:
        """Whether it lies behind the proof, so that an image of it can carry the receipt's digest."""
        return self not in (Stage.TOOLKIT, Stage.SOURCES)

    @property
    def compiles_vllm(self) -> bool:
        """Whether it takes the hours, the memory and the disk of a whole vLLM build."""
        return self in (Stage.PART, Stage.PART_EXPORT, Stage.WHEEL, Stage.RUNTIME, Stage.WHEEL_EXPORT)

    @property
    def compiles(self) -> bool:
        """Whether it compiles vLLM or a part of it, which takes whole trees."""
        return self is Stage.KERNELS or self.compiles_vllm

    @property
    def disk(self) -> int:
        """GiB that a build of this stage needs free on the engine's disk."""
        return _DISK[self]


_DISK = {
    Stage.TOOLKIT: 15,
    Stage.SOURCES: 16,
    Stage.PROOF: 16,
    Stage.PROOF_EXPORT: 16,
    Stage.KERNELS: 25,
    Stage.PART: 60,
    Stage.PART_EXPORT: 60,
    Stage.WHEEL: 60,
    Stage.WHEEL_EXPORT: 60,
    Stage.RUNTIME: 80,
}
# The CUDA base takes about 10 GiB unpacked, PyTorch with its libraries 7, vLLM's build tree and compiler cache 30, the
# runtime image 20 (https://github.com/vllm-project/vllm/pull/40991).

JOB_MEMORY = 8
"""GiB that one compilation of vLLM's largest files can take (https://github.com/vllm-project/vllm/pull/12477)."""


class Outcome(StrEnum):
    """Where a build's result goes."""

    LOAD = "load"
    """Into the engine's own image store."""
    PUSH = "push"
    OUTPUT = "output"
    """Files, into a folder."""


@dataclass(frozen=True)
class Architectures:
    """What the architectures asked for come to."""

    asked: tuple[Arch, ...]
    judged: tuple[Arch, ...]
    """Those that the variant has rules for; verify compiles for these."""
    gpus: tuple[Arch, ...]
    """The GPUs that the built files must run on."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """Where a tree of the image comes from: a pinned or named release, a git reference, or a local folder."""

    version: str = ""
    """Of a release, else empty."""
    context: str = ""
    """What the build context of that name is: ``URL#ref`` or a folder. Empty: the release is fetched in the build."""
    pin: Mapping[str, str] = field(default_factory=dict)
    """What is known of it, for ``pins.json``: ``version``, ``archive``, ``sha256``, ``git``, ``ref``, ``commit``."""
    whole: bool = False
    """Whether git is to give the release, since its archive holds only a part."""


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """How a build runs and what becomes of it, as it was said; what is built does not depend on it."""

    outcome: Outcome = Outcome.LOAD
    output: Path | None = None
    tags: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    """``linux/arm64``; empty: the engine's own."""
    cache_to: tuple[str, ...] = ()
    builder: str = ""
    buildx: tuple[str, ...] = ()
    """Further words for ``docker buildx build``."""
    sccache: bool = False
    jobs: int | None = None
    """Compilations at a time; None: the machine that builds decides by its memory."""
    part: str = ""
    """``2/3``: the part of vLLM's object files to compile, where the stage is ``part``."""
    provenance: str = ""
    sbom: str = ""


@dataclass(frozen=True, kw_only=True)
class BuildRequest(BuildSettings):
    """All that decides what is built, with every default filled in."""

    variant: str
    archs: Architectures
    vllm: Source
    cutlass: Source
    torch: str
    base_image: str
    runtime_image: str
    target: Stage = Stage.RUNTIME
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One machine of a builder."""

    name: str
    running: bool
    platforms: tuple[str, ...]
    """``linux/arm64``, …; the first is its own, others may be emulated."""

    @property
    def native(self) -> str:
        """``linux/arm64``; empty where the node does not say."""
        return self.platforms[0] if self.platforms else ""


@dataclass(frozen=True)
class Engine:
    """A container engine and the builder that a build would use, as they say of themselves."""

    version: str
    """Of the engine; empty where only a builder elsewhere is used."""
    buildx: str
    driver: str
    """``docker``: the engine itself builds; else ``docker-container``, ``remote``, ``kubernetes``."""
    nodes: tuple[Node, ...]
    architecture: str = ""
    """``amd64``, ``arm64``."""
    memory: int | None = None
    """Bytes of the machine that builds; None where it is another and not known."""
    disk: int | None = None
    """Bytes free where the engine keeps its data; None where that is not this machine."""
    root: str = ""
    attests: bool = False
    """Whether the image store can hold attestations (containerd's)."""


@dataclass(frozen=True)
class DryRun:
    """What a build would run, and what it would send."""

    commands: tuple[tuple[str, ...], ...]
    """The words of each. Where there are two, the first writes the proof whose receipts name the second's image."""
    shell: tuple[str, ...]
    """The same, for a POSIX shell."""
    context: str
    written: bool
    """Whether the context is there already."""
    files: Mapping[str, int]
    """The context's files, with their sizes in bytes."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """What a build came to."""

    command: tuple[str, ...]
    image: str
    """``sha256:…``: the image's id, or the digest of what was pushed; empty where files were written."""
    digest: str
    """Of the manifest, where the store has one."""
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    output: str
    seconds: Mapping[str, float]
    """Wall time of each step: ``preflight``, ``context``, ``proof``, ``build``."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One thing that was re-checked: what, what came of it, in words."""

    subject: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Inspection:
    """What an image, or an exported proof, says of itself, and whether it agrees with itself."""

    subject: str
    image: str
    """The id; empty for a folder."""
    architecture: str
    labels: Mapping[str, str]
    pins: Mapping[str, object]
    receipt: str
    """The digest of the receipts, as :func:`fp4patch.images.provenance.receipt_digest` makes it."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was checked and nothing failed."""
        if not self.findings or any(finding.verdict.failed for finding in self.findings):
            return Verdict.FAIL
        return Verdict.PASS
