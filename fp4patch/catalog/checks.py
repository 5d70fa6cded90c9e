"""Checks beyond the types of the model: what one key says of another one, and of other files."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Location
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant

Slip = tuple[str, Location, str, str]
"""An author's mistake: the file, the keys of the value, the expectation and the finding."""


def slips(
    targets: Mapping[str, Target], patches: Mapping[str, Patch], variants: Mapping[str, Variant]
) -> Iterator[Slip]:
    """Yield names that do not exist, keys of edits that do not fit each other, and wrong options of patches."""
    for patch in patches.values():
        file, folder = f"patches/{patch.id}/patch.toml", Path(patch.directory)
        yield from _unknown(file, ("target",), patch.target, targets)
        for number, edit in enumerate(patch.edits):
            for key, expected, found in edit.mistakes(folder):
                yield file, ("edits", number, key), expected, found
        for number, name in enumerate(patch.variants):
            yield from _unknown(file, ("variants", number), name, variants)
        uses = [("probes", number, one.uses) for number, one in enumerate(patch.probes)]
        uses += [("layers", number, one.uses) for number, one in enumerate(patch.layers)]
        for key, number, names in uses:
            for name in names:
                yield from _unknown(file, (key, number, "uses"), name, ["torch", *targets])
    for target in targets.values():
        file = f"patches/{target.name}/target.toml"
        for number, advice in enumerate(target.advice):
            yield from _unknown(file, ("advice", number, "variant"), advice.variant, [*variants, ""])
        for number, part in enumerate(target.contains):
            yield from _unknown(file, ("contains", number, "target"), part.target, targets)
    yield from _options(variants, patches)


def _options(variants: Mapping[str, Variant], patches: Mapping[str, Patch]) -> Iterator[Slip]:
    for variant in variants.values():
        file = f"variants/{variant.name}.toml"
        for target, name in ((target, n) for target, of in variant.targets.items() for n in (*of.patches, *of.watches)):
            if (id_ := f"{target}/{name}") not in patches:
                yield file, ("targets", target), "a patch that exists", id_
            elif name in variant.targets[target].patches:
                options, patch = variant.options_of(target)[name], patches[id_]
                for edit in patch.edits:
                    for key, expected, found in edit.option_mistakes(options, Path(patch.directory)):
                        yield file, ("options", key), expected, found


def _unknown(file: str, location: Location, name: str, known: Collection[str]) -> Iterator[Slip]:
    if name not in known:
        yield file, location, f"one of {', '.join(filter(None, known))}", repr(name)
