"""Checks beyond the types of the model: what one key says of another one, and of other files."""

from collections.abc import Collection, Iterator
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Location
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.edits import WrapAsm

Slip = tuple[Location, str, str]
"""An author's mistake: the keys of the value, the expectation and the finding."""


def patch_slips(patch: Patch, targets: Collection[str], variants: Collection[str]) -> Iterator[Slip]:
    """Yield keys of edits that do not fit each other, and names that do not exist."""
    yield from _unknown(("target",), patch.target, targets)
    for number, edit in enumerate(patch.edits):
        for key, expected, found in edit.mistakes(Path(patch.directory)):
            yield ("edits", number, key), expected, found
    for number, name in enumerate(patch.variants):
        yield from _unknown(("variants", number), name, variants)


def target_slips(target: Target, targets: Collection[str], variants: Collection[str]) -> Iterator[Slip]:
    """Yield variants and targets that do not exist."""
    for number, advice in enumerate(target.advice):
        if advice.variant:
            yield from _unknown(("advice", number, "variant"), advice.variant, variants)
    for number, part in enumerate(target.contains):
        yield from _unknown(("contains", number, "target"), part.target, targets)


def variant_slips(variant: Variant, patches: dict[str, Patch]) -> Iterator[Slip]:
    """Yield patches that do not exist, and errors in the options of those that take options."""
    for target, chosen in variant.targets.items():
        for name in (*chosen.patches, *chosen.watches):
            patch = patches.get(f"{target}/{name}")
            if patch is None:
                yield ("targets", target), "a patch that exists", f"{target}/{name}"
                continue
            options = variant.options | chosen.options.get(name, {})
            for edit in patch.edits if name in chosen.patches else ():
                slips = edit.option_mistakes(options, Path(patch.directory)) if isinstance(edit, WrapAsm) else ()
                yield from ((("options", key), expected, found) for key, expected, found in slips)


def _unknown(location: Location, name: str, known: Collection[str]) -> Iterator[Slip]:
    if name not in known:
        yield location, f"one of {', '.join(known)}", repr(name)
