"""Checks beyond the types of the model: what one key says of another one, and of other files."""

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Location
from fp4patch.catalog.rule import Rule, canonical
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch

Slip = tuple[Location, str, str]
"""An author's mistake: the keys of the value, the expectation and the finding."""


def patch_slips(patch: Patch, targets: dict[str, Target], variants: dict[str, Variant]) -> Iterator[Slip]:
    """Yield keys of edits that do not fit each other, and names that do not exist or occur twice."""
    if patch.target not in targets:
        yield ("target",), f"a target, with patches/{patch.target}/target.toml", repr(patch.target)
    for number, edit in enumerate(patch.edits):
        for key, expected, found in edit.mistakes(Path(patch.directory)):
            yield ("edits", number, key), expected, found
    if patch.rules and not patch.variants:
        yield ("rules",), "`variants`, which the rules are of", "none"
    for number, name in enumerate(patch.variants):
        if name not in variants:
            yield ("variants", number), f"one of {', '.join(variants)}", repr(name)
            continue
        chosen = variants[name].targets.get(patch.target)
        if chosen and patch.name in (*chosen.patches, *chosen.watches):
            yield ("variants", number), "a variant that does not name the patch itself", repr(name)
        yield from _rule_slips(patch.rules, variants[name])
    names = [probe.name for probe in patch.probes]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield ("probes", number, "name"), "a name of its own", repr(name)


def target_slips(target: Target, targets: dict[str, Target], variants: dict[str, Variant]) -> Iterator[Slip]:
    """Yield releases that cannot be fetched, and patches, variants and targets that do not exist."""
    if not (target.tag or target.commits):
        yield ("tag",), "a tag with {version} or {release} in it, or commits", repr(target.tag)
    count = Counter(archive.version for archive in target.pinned)
    for number, archive in enumerate(target.pinned):
        if count[archive.version] > 1:
            key: Location = ("archives", number, "version") if number < len(target.archives) else ("series",)
            yield key, "one archive for each release", f"another {archive.version}"
    uses = {name: variant.targets[target.name] for name, variant in variants.items() if target.name in variant.targets}
    for number, advice in enumerate(target.advice):
        if advice.variant and advice.variant not in uses:
            yield ("advice", number), f"a variant for {target.name}", repr(advice.variant)
    repairs = {name for use in uses.values() for name in use.patches}
    for number, defect in enumerate(target.defects):
        if defect.patch and defect.patch not in repairs:
            yield ("defects", number, "patch"), "a patch that a variant has", repr(defect.patch)
        if not (defect.versions or defect.patch):
            yield ("defects", number), "`versions` or `patch`, which select the trees that have it", "neither"
    for number, part in enumerate(target.contains):
        if part.target not in targets:
            yield ("contains", number, "target"), f"one of {', '.join(targets)}", repr(part.target)


def variant_slips(variant: Variant, targets: dict[str, Target], patches: dict[str, Patch]) -> Iterator[Slip]:
    """Yield names of targets, patches and options that do not exist, and rules that judge nothing."""
    for target, chosen in variant.targets.items():
        if target not in targets:
            yield ("targets",), f"one of {', '.join(targets)}", repr(target)
        for name, times in Counter((*chosen.patches, *chosen.watches)).items():
            if f"{target}/{name}" not in patches:
                yield ("targets", target), "a patch that exists", f"{target}/{name}"
            if times > 1:
                yield ("targets", target), "each patch once", f"{times} of {name}"
        for name in chosen.options:
            if name not in chosen.patches:
                yield ("targets", target, "options"), "one of its patches", repr(name)
        for patch in (patches[f"{target}/{name}"] for name in chosen.patches if f"{target}/{name}" in patches):
            yield from _option_slips(variant, patch, chosen.options.get(patch.name, {}))
    chosen_patches = [patches.get(name) for name in variant.patch_ids]
    if variant.options and not any(patch.takes_options for patch in chosen_patches if patch):
        yield ("options",), "a patch that takes options", "none"
    for name, version in variant.image.trees.items() if variant.image else ():
        pinned = targets[name].commits.keys() | {a.version for a in targets[name].pinned} if name in targets else set()
        if version not in pinned:
            yield ("image", "trees", name), f"a release that patches/{name}/target.toml pins", repr(version)
    yield from _rule_slips(variant.rules, variant)


def _rule_slips(rules: tuple[Rule, ...], variant: Variant) -> Iterator[Slip]:
    every = [str(Arch.parse(arch)) for arch in (*variant.arch, *variant.other_arch)]
    for number, rule in enumerate(rules):
        if not rule.judges:
            yield ("rules", number), "a condition", "none: identical, requires, forbids or without"
        for arch in rule.arch:
            if not any(fnmatchcase(known, canonical(arch)) for known in every):
                yield ("rules", number, "arch"), f"one of {', '.join(every)}, or a glob over them", repr(arch)


def _option_slips(variant: Variant, patch: Patch, own: dict[str, str]) -> Iterator[Slip]:
    """Yield errors in the options of a patch: those of its edits that take options check them, else the first one."""
    options = variant.options | own if patch.takes_options else own
    for edit in [edit for edit in patch.edits if edit.takes_options] or patch.edits[:1]:
        for key, expected, found in edit.option_mistakes(options, Path(patch.directory)):
            of_patch: Location = ("targets", patch.target, "options", patch.name, key)
            yield of_patch if key in own or not variant.options else ("options", key), expected, found
