"""What the types of the model cannot say: that names exist, versions and patterns parse, files are there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from fp4patch.model.arch import Arch
from fp4patch.model.patch import Patch
from fp4patch.model.probe import Numerics, Probe
from fp4patch.model.problem import Problem
from fp4patch.model.target import Target
from fp4patch.model.variant import Variant


def misnamed(path: Path, root: Path, names: dict[str, str]) -> list[Problem]:
    """A name that is not that of its folder or file; ``names`` are those on disk, with what the file says."""
    where = str(path.relative_to(root))
    return [
        Problem(f"the name of its folder or file, {on_disk!r}", repr(said), file=where)
        for on_disk, said in names.items()
        if on_disk != said
    ]


def check_patch(patch: Patch, path: Path, root: Path) -> list[Problem]:
    """What types cannot say: versions that parse, files that exist, regular expressions that compile."""
    where = str(path.relative_to(root))
    problems = []
    if not _is(SpecifierSet, patch.applies):
        problems.append(
            Problem("a version specifier such as '>=4.2,<4.8'", repr(patch.applies), file=where, nearest="applies")
        )
    for number, edit in enumerate(patch.edits):
        for retired in getattr(edit, "retired", ()):
            if retired.since and not _is(Version, retired.since):
                problems.append(
                    Problem("a version", repr(retired.since), file=where, nearest=f"edits[{number}].retired.since")
                )
        template = getattr(edit, "template", None)
        if template and not (path.parent / template).is_file():
            problems.append(
                Problem("a file beside patch.toml", repr(template), file=where, nearest=f"edits[{number}].template")
            )
    tables: dict[str, Sequence[Probe | Numerics]] = {"probes": patch.probes, "numerics": patch.numerics}
    for kind, named in tables.items():
        seen = set()
        for number, thing in enumerate(named):
            key = f"{kind}[{number}]"
            if not (path.parent / thing.source).is_file():
                problems.append(
                    Problem("a file beside patch.toml", repr(thing.source), file=where, nearest=f"{key}.source")
                )
            if thing.name in seen:
                problems.append(Problem("a name of its own", repr(thing.name), file=where, nearest=f"{key}.name"))
            seen.add(thing.name)
    return problems


def _is(kind: type[Version] | type[SpecifierSet], text: str) -> bool:
    """Whether the text is one."""
    try:
        kind(text)
    except (InvalidVersion, InvalidSpecifier):
        return False
    return True


def check_target(target: Target, targets: dict[str, Target], variants: dict[str, Variant]) -> list[Problem]:
    """Specifiers that parse, variants that exist and are for this target, targets that exist inside it."""
    where = f"patches/{target.name}/target.toml"
    problems = []
    for number, advice in enumerate(target.advice):
        key = f"advice[{number}]"
        for text in (advice.versions, advice.cuda):
            if not _is(SpecifierSet, text):
                problems.append(Problem("a version specifier", repr(text), file=where, nearest=key))
        variant = variants.get(advice.variant)
        if advice.variant and (variant is None or target.name not in variant.targets):
            problems.append(Problem(f"a variant for {target.name}", repr(advice.variant), file=where, nearest=key))
    problems += [
        Problem(f"one of {', '.join(targets)}", repr(part.target), file=where, nearest=f"contains[{number}].target")
        for number, part in enumerate(target.contains)
        if part.target not in targets
    ]
    return problems


def check_variant(variant: Variant, targets: dict[str, Target], patches: dict[str, Patch]) -> list[Problem]:
    """Names that must exist, architectures and regular expressions that must parse."""
    where = f"variants/{variant.name}.toml"
    problems = []
    for target, chosen in variant.targets.items():
        if target not in targets:
            problems.append(Problem(f"one of {', '.join(targets)}", repr(target), file=where, nearest="targets"))
        for name in (*chosen.patches, *chosen.options, *chosen.watches):
            if f"{target}/{name}" not in patches:
                problems.append(
                    Problem("a patch that exists", f"{target}/{name}", file=where, nearest=f"targets.{target}")
                )
    problems += _check_pins(variant, targets, where)
    for key, archs in [("arch", variant.arch), *((f"rules[{n}].arch", r.arch) for n, r in enumerate(variant.rules))]:
        for arch in archs:
            try:
                Arch.parse(arch)
            except ValueError as error:
                problems.append(Problem("an architecture such as sm_121a", str(error), file=where, nearest=key))
    for number, rule in enumerate(variant.rules):
        for pattern in (*rule.requires, *rule.forbids):
            try:
                re.compile(pattern)
            except re.error as error:
                problems.append(
                    Problem("a regular expression", f"{pattern!r}: {error}", file=where, nearest=f"rules[{number}]")
                )
        if not rule.judges:
            problems.append(
                Problem(
                    "a condition", "none: identical, requires, forbids or max", file=where, nearest=f"rules[{number}]"
                )
            )
    return problems


def _check_pins(variant: Variant, targets: dict[str, Target], where: str) -> list[Problem]:
    """What an image is built from is pinned by a hash: an archive's, or a commit's."""
    if variant.image is None:
        return []
    problems = []
    for name, version in (("vllm", variant.image.vllm), ("cutlass", variant.image.cutlass)):
        target = targets.get(name)
        pinned = {*target.commits, *(v for a in target.archives for v in a.versions)} if target else set()
        if version not in pinned:
            problems.append(
                Problem(f"a release that patches/{name}/target.toml pins", repr(version), file=where, nearest="image")
            )
    return problems
