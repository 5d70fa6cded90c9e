"""Reads ``patches/`` and ``variants/`` into the model, and reports every mistake in them at once, by file and key.

The shape of each file is the dataclass in :mod:`fp4patch.model`; nothing is declared twice.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import TypeAdapter, ValidationError

from fp4patch.errors import ManifestError, UsageError
from fp4patch.model import Arch, Edit, Numerics, Patch, Probe, Problem, Target, Variant

T = TypeVar("T", Patch, Target, Variant)

OPS = {kind.__name__: str(kind.op) for kind in get_args(Edit)}
"""Each kind of edit, and what names it in TOML."""

SET_BY_LOADER = {Patch: {"directory"}, Target: set[str](), Variant: set[str]()}


@dataclass(frozen=True)
class Catalog:
    """All that can be applied. Keys are names: ``cutlass``, ``cutlass/e2m1-guard``, ``next2``."""

    root: Path
    targets: dict[str, Target]
    patches: dict[str, Patch]
    variants: dict[str, Variant]

    def variant(self, name: str) -> Variant:
        """The variant of that name; UsageError names the ones there are."""
        return _named(self.variants, name, "variant")

    def target(self, name: str) -> Target:
        """The target of that name; UsageError names the ones there are."""
        return _named(self.targets, name, "target")

    def patches_of(self, variant: Variant, target: str) -> tuple[Patch, ...]:
        """The variant's patches for a target, in the order in which they apply."""
        chosen = variant.targets.get(target)
        return tuple(self.patches[f"{target}/{name}"] for name in chosen.patches) if chosen else ()


def _named(things: dict[str, T], name: str, what: str) -> T:
    try:
        return things[name]
    except KeyError:
        raise UsageError(f"there is no {what} {name!r}", help=f"the {what}s are {', '.join(things)}") from None


def data_root() -> Path:
    """The folder that holds ``patches/`` and ``variants/``: inside the wheel, or the checkout's top."""
    if chosen := os.environ.get("FP4PATCH_DATA"):
        return Path(chosen)
    package = Path(__file__).resolve().parent.parent
    return package / "data" if (package / "data" / "variants").is_dir() else package.parent


@cache
def load(root: Path | None = None) -> Catalog:
    """Read everything below ``root`` (default: the shipped data). ManifestError carries every problem found."""
    root = root or data_root()
    problems: list[Problem] = []
    targets, patches, variants = {}, {}, {}
    for path in sorted(root.glob("patches/*/target.toml")):
        if target := _read(Target, path, root, problems):
            targets[target.name] = target
            problems += _misnamed(path, root, {path.parent.name: target.name})
    for path in sorted(root.glob("patches/*/*/patch.toml")):
        if patch := _read(Patch, path, root, problems):
            names = {path.parent.name: patch.name, path.parent.parent.name: patch.target}
            problems += _misnamed(path, root, names) + _check_patch(patch, path, root)
            probes = tuple(replace(probe, patch=patch.id) for probe in patch.probes)
            patches[patch.id] = replace(patch, directory=str(path.parent), probes=probes)
    for path in sorted(root.glob("variants/*.toml")):
        if variant := _read(Variant, path, root, problems):
            problems += _misnamed(path, root, {path.stem: variant.name})
            variants[variant.name] = variant
    if not problems:
        for variant in variants.values():
            problems += _check_variant(variant, targets, patches)
        for target in targets.values():
            problems += _check_advice(target, variants)
            problems += [
                Problem(
                    f"one of {', '.join(targets)}",
                    repr(part.target),
                    file=f"patches/{target.name}/target.toml",
                    nearest=f"contains[{number}].target",
                )
                for number, part in enumerate(target.contains)
                if part.target not in targets
            ]
    if not (targets and patches and variants):
        problems.append(Problem("targets, patches and variants", f"not all of them below {root}"))
    if problems:
        raise ManifestError(
            "the catalog is not valid", problems=problems, help="the keys are those of fp4patch/model.py"
        )
    return Catalog(root, targets, patches, variants)


def _read(kind: type[T], path: Path, root: Path, problems: list[Problem]) -> T | None:
    """One file as a value, or its problems added to the list."""
    where = str(path.relative_to(root))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(Problem("TOML", str(error), file=where))
        return None
    for key in SET_BY_LOADER[kind] & data.keys():
        problems.append(Problem("no such key: the loader sets it", f"{key} = {data[key]!r}", file=where))
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        unknown = _unknown_ops(data)
        problems += [
            Problem(f"an op: {', '.join(OPS.values())}", repr(op), file=where, nearest=key) for key, op in unknown
        ]
        problems += [
            Problem(found["msg"], _found(found["input"]), file=where, nearest=_key(found["loc"]))
            for found in error.errors(include_url=False)
            if _is_of_its_op(found["loc"], data)
        ]
        return None


def _unknown_ops(data: dict[str, Any]) -> list[tuple[str, object]]:
    edits = data.get("edits")
    ops = [(f"edits[{at}].op", edit.get("op")) for at, edit in enumerate(edits if isinstance(edits, list) else ())]
    return [(key, op) for key, op in ops if op not in OPS.values()]


def _is_of_its_op(location: tuple[int | str, ...], data: dict[str, Any]) -> bool:
    """Whether an error is about the kind of edit that the data names: pydantic tries and reports every kind."""
    if location[0] != "edits" or len(location) < 3:
        return True
    return bool(OPS.get(str(location[2])) == data["edits"][location[1]].get("op"))


def _key(location: tuple[int | str, ...]) -> str:
    """``edits[0].count`` for ("edits", 0, "drop-operand", "count"): the union's own tags are left out."""
    text = ""
    for at, part in enumerate(location):
        if isinstance(part, int):
            text += f"[{part}]"
        elif at and isinstance(location[at - 1], int) and location[0] == "edits" and at == 2:
            continue
        else:
            text += f".{part}" if text else part
    return text


def _found(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _misnamed(path: Path, root: Path, names: dict[str, str]) -> list[Problem]:
    where = str(path.relative_to(root))
    return [
        Problem(f"the name of its folder or file, {on_disk!r}", repr(said), file=where)
        for on_disk, said in names.items()
        if on_disk != said
    ]


def _check_patch(patch: Patch, path: Path, root: Path) -> list[Problem]:
    """What types cannot say: versions that parse, files that exist, regular expressions that compile."""
    where = str(path.relative_to(root))
    problems = []
    if not _is_specifier(patch.applies):
        problems.append(
            Problem("a version specifier such as '>=4.2,<4.8'", repr(patch.applies), file=where, nearest="applies")
        )
    for number, edit in enumerate(patch.edits):
        for retired in getattr(edit, "retired", ()):
            if retired.since and not _is_version(retired.since):
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


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _check_advice(target: Target, variants: dict[str, Variant]) -> list[Problem]:
    """Specifiers that parse, and variants that exist and are for this target."""
    where = f"patches/{target.name}/target.toml"
    problems = []
    for number, advice in enumerate(target.advice):
        key = f"advice[{number}]"
        for text in (advice.versions, advice.cuda):
            if not _is_specifier(text):
                problems.append(Problem("a version specifier", repr(text), file=where, nearest=key))
        variant = variants.get(advice.variant)
        if advice.variant and (variant is None or target.name not in variant.targets):
            problems.append(Problem(f"a variant for {target.name}", repr(advice.variant), file=where, nearest=key))
    return problems


def _is_specifier(text: str) -> bool:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _check_variant(variant: Variant, targets: dict[str, Target], patches: dict[str, Patch]) -> list[Problem]:
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
        if not (rule.identical or rule.requires or rule.forbids or rule.max):
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
