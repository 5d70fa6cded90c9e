"""A variant: the contents of ``variants/*.toml``, with those of the files that it extends."""

from dataclasses import dataclass, field
from typing import Annotated

from fp4patch.catalog.rule import OperationPattern, Promise, Rule
from fp4patch.core.table import SOME, ArchName, Manifest, Sha256, SomeText


@dataclass(frozen=True, kw_only=True)
class VariantTarget(Manifest):
    """A variant's ordered patches for one target, and their options."""

    patches: tuple[str, ...]
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    watches: tuple[str, ...] = ()
    """Patches that it leaves out and whose probes run anyway, since the rules apply to the code that they would
    change."""


@dataclass(frozen=True, kw_only=True)
class TorchPin(Manifest):
    """The PyTorch that vLLM is compiled against and runs with."""

    version: str
    """Version, with its local part if the plain one would also name a build without CUDA: ``2.10.0+cu130``."""
    wheels: dict[str, Sha256] = field(default_factory=dict)
    """SHA-256 (hex) of each file that may be installed. Empty: none is known, and the version alone holds."""


@dataclass(frozen=True, kw_only=True)
class Pins(Manifest):
    """Inputs of an image of a variant."""

    trees: dict[str, str]
    """Release of each source tree, by the name of its target, where the hash of that release is."""
    cuda: str
    """The release of the toolkit: ``13.0.2``."""
    torch: TorchPin
    base: str
    """The image that compiles: ``name:tag@sha256:digest``."""
    runtime: str
    """The image that the built vLLM runs in."""


@dataclass(frozen=True, kw_only=True)
class Variant(Manifest):
    """A named list of patches, the architectures it is for, and the rules its machine code must satisfy."""

    name: str
    title: SomeText
    summary: str
    cost: str
    """Cost of this variant on a target that has the instruction, in one line."""
    arch: Annotated[tuple[ArchName, ...], SOME]
    targets: Annotated[dict[str, VariantTarget], SOME]
    options: dict[str, str] = field(default_factory=dict)
    """Options of all patches that take options. The options of a target's patch are added to them, or replace them."""
    promise: Promise = Promise.EXACT
    """Result of its conversions over all 2^32 inputs, wherever they are software."""
    patterns: dict[str, OperationPattern] = field(default_factory=dict)
    """Names of patterns, by which the variant's rules require and forbid instructions."""
    rules: tuple[Rule, ...] = ()
    image: Pins | None = None
    """Inputs of an image. None: no image is built of it."""

    @property
    def patch_ids(self) -> tuple[str, ...]:
        """Return the ids of its patches, of all targets."""
        return tuple(f"{target}/{name}" for target, chosen in self.targets.items() for name in chosen.patches)

    def options_of(self, target: str) -> dict[str, dict[str, str]]:
        """Return the options of each of its patches of a target: those of all, and its own."""
        chosen = self.targets[target]
        return {name: self.options | chosen.options.get(name, {}) for name in chosen.patches}
