"""Checks beyond the types of the model: names exist, versions and patterns parse, files exist."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from fp4patch.catalog.coverage import names
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target, VersionPattern
from fp4patch.catalog.variant import Variant, VariantTarget
from fp4patch.core.arch import Arch
from fp4patch.core.problem import Problem
from fp4patch.core.tree_path import is_inside
from fp4patch.edits import Edit


def misnamed(path: Path, root: Path, names: dict[str, str]) -> list[Problem]:
    """Return a name that is not that of its directory or file; ``names`` are those on disk, with the name in the
    file."""
    where = str(path.relative_to(root))
    return [
        Problem(f"the name of its directory or file, {on_disk!r}", repr(said), file=where)
        for on_disk, said in names.items()
        if on_disk != said
    ]


class _File:
    """Problems of one file."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[Problem] = []

    def wrong(self, key: str, expected: str, found: str) -> None:
        self.problems.append(Problem(expected, found, file=self.where, nearest=key))

    def expect(self, sound: object, key: str, expected: str, found: str) -> None:
        if not sound:
            self.wrong(key, expected, found)

    def text(self, thing: object, keys: Iterable[str], prefix: str = "") -> None:
        """Check texts that must not be empty."""
        for key in keys:
            self.expect(getattr(thing, key).strip(), f"{prefix}{key}", "some text", "none")

    def inside(self, path: str, key: str) -> None:
        """A file or directory of a source tree, by the one name that it has."""
        self.expect(is_inside(path) and "\\" not in path, key, "a path inside the tree, with slashes", repr(path))

    def globs(self, patterns: Sequence[str], key: str) -> None:
        """Check globs of files in a source tree."""
        self.expect(patterns, key, "a glob at least", "none")
        for pattern in patterns:
            self.inside(pattern, key)
            stars = all("**" not in part or part == "**" for part in PurePosixPath(pattern).parts)
            self.expect(stars, key, "`**` as the whole name of a directory", repr(pattern))

    def pattern(self, text: str, key: str, groups: int = 0) -> None:
        """A regular expression with so many groups at least."""
        try:
            there = re.compile(text).groups
        except re.error as error:
            self.wrong(key, "a regular expression", f"{text!r}: {error}")
        else:
            self.expect(there >= groups, key, f"a regular expression with {groups} group", repr(text))


def check_patch(patch: Patch, path: Path, root: Path) -> list[Problem]:
    """Yield problems beyond the types: versions that do not parse, missing files, wrong regular expressions."""
    file = _File(str(path.relative_to(root)))
    file.text(patch, ("version", "title", "reason", "link", "applies", "retire"))
    there = (root / "patches" / patch.target / "target.toml").is_file()
    file.expect(there, "target", f"a target, with patches/{patch.target}/target.toml", repr(patch.target))
    specifier = "a version specifier such as '>=4.2,<4.8'"
    file.expect(_is(SpecifierSet, patch.applies), "applies", specifier, repr(patch.applies))
    file.expect(patch.edits, "edits", "an edit at least", "none")
    for number, edit in enumerate(patch.edits):
        _check_edit(file, edit, f"edits[{number}].", path.parent)
    for number, absence in enumerate(patch.absent):
        key = f"absent[{number}]"
        file.globs(absence.files, f"{key}.files")
        file.expect(_is(SpecifierSet, absence.versions), f"{key}.versions", specifier, repr(absence.versions))
        for pattern in (absence.pattern, *absence.mention):
            file.expect(pattern, key, "a regular expression", "none")
            file.pattern(pattern, key)
    for number, allowed in enumerate(patch.allowed):
        file.globs(allowed.files, f"allowed[{number}].files")
        file.text(allowed, ("because",), f"allowed[{number}].")
    for number, macro in enumerate(patch.macros):
        key = f"macros[{number}]"
        file.inside(macro.header, f"{key}.header")
        file.expect(macro.name.isidentifier(), f"{key}.name", "the name of a macro", repr(macro.name))
        file.expect(_is(Version, macro.cuda), f"{key}.cuda", "a CUDA release such as '13.0'", repr(macro.cuda))
        for arch in (*macro.off, *macro.same):
            file.expect(_is_arch(arch), key, "an architecture such as sm_121a", repr(arch))
    _check_conditions(file, patch, path.parent)
    for number, rule in enumerate(patch.built):
        named = bool(rule.targets) and all(map(_is_arch, rule.targets))
        file.expect(named, f"built[{number}].targets", "architectures such as sm_121a", repr(list(rule.targets)))
    for number, refusal in enumerate(patch.refused):
        known = refusal.probe in {probe.name for probe in patch.probes}
        file.expect(known, f"refused[{number}].probe", "the name of one of the patch's probes", repr(refusal.probe))
        file.text(refusal, ("message",), f"refused[{number}].")
    file.expect(patch.touches, "touches", "the functions that its edits touch", "none")
    for number, unchecked in enumerate(patch.unchecked):
        file.text(unchecked, ("because",), f"unchecked[{number}].")
    _check_probes(file, patch, path)
    return file.problems


def _check_probes(file: _File, patch: Patch, path: Path) -> None:
    """Check names, files and targets of probes."""
    seen = set()
    for number, probe in enumerate(patch.probes):
        key = f"probes[{number}]"
        source = (path.parent / probe.source).is_file()
        file.expect(source, f"{key}.source", "a file beside patch.toml", repr(probe.source))
        for folder in probe.include:
            is_there = (path.parent / folder).is_dir()
            file.expect(is_there, f"{key}.include", "a directory beside patch.toml", repr(folder))
        for arch in probe.also:
            file.expect(_is_arch(arch), f"{key}.also", "an architecture such as sm_121a", repr(arch))
        if probe.needs:
            file.globs(probe.needs.search, f"{key}.needs.search")
        file.expect(probe.name not in seen, f"{key}.name", "a name of its own", repr(probe.name))
        seen.add(probe.name)


def _check_conditions(file: _File, patch: Patch, folder: Path) -> None:
    for number, condition in enumerate(patch.conditions):
        key = f"conditions[{number}]"
        file.globs(condition.search, f"{key}.search")
        file.text(condition, ("begins",), f"{key}.")
        there = (folder / condition.shim).is_file()
        file.expect(there, f"{key}.shim", "a file beside patch.toml", repr(condition.shim))


def check_coverage(patch: Patch, patches: Iterable[Patch]) -> list[Problem]:
    """Check that a probe of a patch for its target covers each function that a patch changes, or a reason does."""
    ours = [other for other in patches if other.target == patch.target]
    covered = [entry for other in ours for probe in other.probes for entry in probe.covers]
    covered += [entry for other in ours for one in other.evaluated for entry in one.covers]
    excused = [entry for unchecked in patch.unchecked for entry in unchecked.functions]
    return [
        Problem(
            "a check of each function that the patch touches",
            f"none of `{function}`",
            "add it to `covers` of the probe that calls it, or to an [[unchecked]] table with the reason",
            file=f"patches/{patch.id}/patch.toml",
            nearest="touches",
        )
        for function in patch.touches
        if not any(names(entry, function) for entry in (*covered, *excused))
    ]


def _check_edit(file: _File, edit: Edit, prefix: str, folder: Path) -> None:
    """Check that required texts of an edit are not empty, and that its files beside ``patch.toml`` exist."""
    for field in dataclasses.fields(edit):
        value, key = getattr(edit, field.name), f"{prefix}{field.name}"
        if field.name == "file":
            file.inside(value, key)
            file.expect(not set(value) & set("*?["), key, "one path (`search` takes globs)", repr(value))
        elif field.name == "search":
            file.globs(value, key)
        elif isinstance(value, int):
            file.expect(value > 0, key, "a number from 1 on", str(value))
        elif field.name == "template":
            _check_template(file, folder / value, key, value)
        elif isinstance(value, str) and field.default is dataclasses.MISSING and field.name != "replace":
            file.text(edit, (field.name,), prefix)
        elif isinstance(value, tuple) and field.default is dataclasses.MISSING:
            file.expect(value and all(map(str.strip, value)), key, "something in each place", repr(list(value)))
    for number, retired in enumerate(getattr(edit, "retired", ())):
        file.text(retired, ("tokens",), f"{prefix}retired[{number}].")
        sound = not retired.since or _is(Version, retired.since)
        file.expect(sound, f"{prefix}retired[{number}].since", "a version", repr(retired.since))
    present = getattr(edit, "present", "")
    file.expect(_is(SpecifierSet, present), f"{prefix}present", "a version specifier such as '>=4.2'", repr(present))
    for key, expected, found in edit.mistakes(folder):
        file.wrong(f"{prefix}{key}", expected, found)


def _check_template(file: _File, path: Path, key: str, said: str) -> None:
    try:
        file.expect(path.read_text(encoding="utf-8").strip(), key, "a file with something in it", repr(said))
    except UnicodeDecodeError as error:
        file.wrong(key, "a file of UTF-8 text", f"{said!r}: {error}")
    except OSError:
        file.wrong(key, "a file beside patch.toml", repr(said))


def _is(kind: type[Version] | type[SpecifierSet], text: str) -> bool:
    """Return whether the text is of that kind: a version or a specifier."""
    try:
        kind(text)
    except (InvalidVersion, InvalidSpecifier):
        return False
    return True


def check_target(target: Target, targets: dict[str, Target], variants: dict[str, Variant]) -> list[Problem]:
    """Paths inside the tree, patterns and versions that parse, pins that can hold, variants and targets that exist."""
    file = _File(f"patches/{target.name}/target.toml")
    for key, marks in (("marks", target.marks), *(("other_marks", marks) for marks in target.other_marks)):
        file.expect(marks, key, "a file at least, or every directory would be such a tree", "none")
        for mark in marks:
            file.inside(mark, key)
    stated = target.version
    for path in stated.files if isinstance(stated, VersionPattern) else (stated.file,):
        file.inside(path, "version")
    if isinstance(stated, VersionPattern):
        file.pattern(stated.pattern, "version.pattern", groups=1)
    tagged = _names_version(target.tag) if target.tag else bool(target.commits)
    file.expect(tagged, "tag", "a tag with {version} or {release} in it, or commits", repr(target.tag))
    _check_sources(file, target)
    for text in target.gcc:
        file.expect(_is(SpecifierSet, text), "gcc", "a version specifier", repr(text))
    for number, advice in enumerate(target.advice):
        key = f"advice[{number}]"
        for text in (advice.versions, advice.cuda):
            file.expect(_is(SpecifierSet, text), key, "a version specifier", repr(text))
        variant = variants.get(advice.variant)
        fits = not advice.variant or (variant and target.name in variant.targets)
        file.expect(fits, key, f"a variant for {target.name}", repr(advice.variant))
    if target.build:
        file.pattern(target.build.kernels, "build.kernels")
        for cuda in target.build.cuda:
            file.expect(_is(Version, cuda), "build.cuda", "a CUDA release such as '13.0'", repr(cuda))
    for number, gate in enumerate(target.gates):
        file.inside(gate.file, f"gates[{number}].file")
        file.expect(_is_arch(gate.gpu), f"gates[{number}].gpu", "a GPU such as sm_121", repr(gate.gpu))
    _check_defects(file, target, variants)
    for number, part in enumerate(target.contains):
        known = f"one of {', '.join(targets)}"
        file.expect(part.target in targets, f"contains[{number}].target", known, repr(part.target))
        for place in part.at:
            file.inside(place, f"contains[{number}].at")
    return file.problems


def _check_defects(file: _File, target: Target, variants: dict[str, Variant]) -> None:
    """Each defect names its releases or its patch, and a patch is one that a variant has."""
    uses = [variant.targets[target.name] for variant in variants.values() if target.name in variant.targets]
    repairs = {"", *(name for use in uses for name in use.patches)}
    for number, defect in enumerate(target.defects):
        key = f"defects[{number}]"
        for gpu in defect.gpus or ("none",):
            file.expect(_is_arch(gpu), f"{key}.gpus", "a GPU such as sm_121", repr(gpu))
        file.expect(_is(SpecifierSet, defect.versions), f"{key}.versions", "a version specifier", repr(defect.versions))
        file.expect(defect.patch in repairs, f"{key}.patch", "a patch that a variant has", repr(defect.patch))
        file.expect(
            defect.versions or defect.patch,
            key,
            "`versions` or `patch`, which select the trees that have it",
            "neither",
        )


def _check_sources(file: _File, target: Target) -> None:
    """Each release comes from one place, and that is pinned by a hash."""
    for number, series in enumerate(target.series):
        key = f"series[{number}]"
        file.expect(_names_version(series.filename), f"{key}.filename", "a name with {version} in it", series.filename)
        file.expect(series.sha256, f"{key}.sha256", "a release at least", "none")
    count = Counter(archive.version for archive in target.pinned)
    for number, archive in enumerate(target.pinned):
        single = number < len(target.archives)
        key = f"archives[{number}]" if single else "series"
        at, digest = (f"{key}.version", f"{key}.sha256") if single else (f"{key}.sha256",) * 2
        file.expect(_is(Version, archive.version), at, "a version", repr(archive.version))
        file.expect(count[archive.version] == 1, at, "one archive for each release", f"another {archive.version}")
        hexadecimal = re.fullmatch("[0-9a-f]{64}", archive.sha256)
        file.expect(hexadecimal, digest, "a SHA-256, 64 hex digits in lower case", repr(archive.sha256))
        file.expect("/" not in archive.filename, f"{key}.filename", "the name of a file", repr(archive.filename))
    for version, commit in target.commits.items():
        file.expect(_is(Version, version), "commits", "a version", repr(version))
        file.expect(re.fullmatch("[0-9a-f]{40}", commit), f"commits.{version}", "40 hex digits", repr(commit))


def _names_version(tag: str) -> bool:
    try:
        return tag.format(version="1", release="1") != tag.format(version="2", release="2")
    except (ValueError, LookupError):
        return False


def _is_arch(text: str) -> bool:
    try:
        Arch.parse(text)
    except ValueError:
        return False
    return True


def check_variant(variant: Variant, targets: dict[str, Target], patches: dict[str, Patch]) -> list[Problem]:
    """Names that must exist, architectures and regular expressions that must parse."""
    file = _File(f"variants/{variant.name}.toml")
    file.expect(variant.targets, "targets", "a target at least", "none")
    file.expect(variant.arch, "arch", "an architecture at least", "none")
    for target, chosen in variant.targets.items():
        key = f"targets.{target}"
        file.expect(target in targets, "targets", f"one of {', '.join(targets)}", repr(target))
        for name in (*chosen.patches, *chosen.watches):
            file.expect(f"{target}/{name}" in patches, key, "a patch that exists", f"{target}/{name}")
        for name, times in Counter((*chosen.patches, *chosen.watches)).items():
            file.expect(times == 1, key, "each patch once", f"{times} of {name}")
        _check_options(file, target, chosen, patches)
    chosen_patches = [patches.get(f"{name}/{patch}") for name, to in variant.targets.items() for patch in to.patches]
    taken = not variant.options or any(patch.takes_options for patch in chosen_patches if patch)
    file.expect(taken, "options", "a patch that takes options", "none")
    _check_pins(file, variant, targets)
    every = (*variant.arch, *variant.other_arch)
    for arch in every:
        try:
            Arch.parse(arch)
        except ValueError as error:
            key = "arch" if arch in variant.arch else "other_arch"
            file.wrong(key, "an architecture such as sm_121a", str(error))
    for number, rule in enumerate(variant.rules):
        key = f"rules[{number}]"
        for pattern in (*rule.requires, *rule.forbids):
            file.pattern(pattern, key)
        file.expect(rule.judges, key, "a condition", "none: identical, requires, forbids or without")
        file.expect(rule.probes, f"{key}.probes", "a probe at least", "none")
        file.expect(rule.arch, f"{key}.arch", "an architecture at least", "none")
        known = [Arch.parse(arch) for arch in every if _is_arch(arch)]
        for arch in rule.arch if known else ():
            applies = any(replace(rule, arch=(arch,)).is_for(one) for one in known)
            file.expect(applies, f"{key}.arch", f"one of {', '.join(every)}, or a glob over them", repr(arch))
    return file.problems


def _check_options(file: _File, target: str, chosen: VariantTarget, patches: dict[str, Patch]) -> None:
    """Options are for patches that the variant applies, and those of its edits that take options check them."""
    for name in chosen.options:
        file.expect(name in chosen.patches, f"targets.{target}.options", "one of its patches", repr(name))
    for name in chosen.patches:
        patch, options = patches.get(f"{target}/{name}"), chosen.options.get(name, {})
        takers = [edit for edit in patch.edits if edit.takes_options] or patch.edits[:1] if patch else ()
        wrong = (found for edit in takers if patch for found in edit.option_mistakes(options, Path(patch.directory)))
        for key, expected, found in dict.fromkeys(wrong):
            file.wrong(f"targets.{target}.options.{name}.{key}", expected, found)


def _check_pins(file: _File, variant: Variant, targets: dict[str, Target]) -> None:
    """Check that the releases of an image are pinned by a hash: an archive's, or a commit's."""
    if variant.image is None:
        return
    for name, version in variant.image.trees.items():
        target = targets.get(name)
        pinned = {*target.commits, *(archive.version for archive in target.pinned)} if target else set()
        wanted = f"a release that patches/{name}/target.toml pins"
        file.expect(version in pinned, f"image.trees.{name}", wanted, repr(version))
