"""Bring the records up to date with the releases that there are, or name what a person must decide.

    python -m tools.watch                   what is new on the package index
    python -m tools.watch --git             and what has only a tag
    python -m tools.watch --all             every release again
    python -m tools.watch --missing         only the patches that rows do not have yet
    python -m tools.watch vllm==0.33.0      this one, and verify it
    python -m tools.watch --claims          what pages say of releases (tools/claims.py)

A release is new as long as the matrix has no row of it, or one with a drift or a failed verify. Each is fetched, by the
SHA-256 that the index states; every patch is tried; the variants of `--verify` are applied and verified. What follows
from a release is written at once, so that a pull request of it is a difference to review:

| file | what |
|---|---|
| records/matrix.json | its row; the patches that upstream has taken; releases of which there is no source |
| patches/<target>/target.toml | its archive and hash, or the commit of its tag |
| patches/<target>/<patch>/patch.toml | the release in `applies`, where the patch fits, or has nothing to do |
| records/releases.json, records/answers.json | what doctor reads of it |
| records/known.toml | the newest PyTorch whose arch lists were read |

A patch that drifted is a decision: the summary has upstream's change beside what the patch is for. Exit status 1 if
there is a decision, a verify failed, or a release was not available; each has its line, on stdout and, where
GITHUB_STEP_SUMMARY is set, in the job's summary.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from pypi_simple import parse_filename

from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import Catalog, forget, load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Archive, Target
from fp4patch.commands.explore_page import MATRIX
from fp4patch.commands.verify_text import executions
from fp4patch.core import progress
from fp4patch.core.document import SCHEMA
from fp4patch.core.errors import Fp4PatchError, UsageError
from fp4patch.core.release import covers
from fp4patch.core.results import State
from fp4patch.proof.result import VerifyReport, reason
from fp4patch.proof.verify import VerifyRequest, verify_trees
from fp4patch.sources import git, index
from fp4patch.sources.fetch import fetch
from fp4patch.tree.apply import apply, revert
from fp4patch.tree.evaluate import try_patches
from fp4patch.tree.locking import locked
from fp4patch.tree.status import status
from tools import claims, decisions, pytorch
from tools.pages import answers, releases

ENTRY = "\n[[archives]]\n"
RELEASES = "\neach.R = [\n"
COMMITS = "\n[commits]\n"
FAILS = (State.DRIFTED, State.FOREIGN)


@dataclass(frozen=True)
class Release:
    """A release to try: an archive of the package index, or, without one, a tag."""

    target: Target
    version: str
    """Version of the tree if the catalog pins the archive, else of the project on the index."""
    archive: Archive | None
    pinned: bool = True

    @property
    def foreign(self) -> Archive | None:
        """True if this is an archive of another project, whose name does not state the release that it holds."""
        named = self.pinned or not self.archive or belongs(self.target, self.archive.project)
        return None if named else self.archive

    @property
    def key(self) -> tuple[str, str]:
        """Name in the matrix; for a foreign archive that is not open yet, its file's name."""
        return self.target.name, self.foreign.filename if self.foreign else self.version


@dataclass
class Matrix:
    """The record: the result of each patch on each release, and the releases without a row."""

    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)
    """Archives that hold a release which another archive is pinned for: ``{filename: "cutlass 4.0.0"}``."""
    without: dict[tuple[str, str], str] = field(default_factory=dict)
    """Releases that no archive holds, and the kind of archive that would hold them."""

    @classmethod
    def read(cls, file: Path) -> Matrix:
        """Read the record; it is empty if none was written."""
        document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return cls(
            {(row["target"], row["version"]): row for row in document.get("rows", ())},
            document.get("again", {}),
            {(row["target"], row["version"]): row["lacks"] for row in document.get("without", ())},
        )

    def write(self, root: Path) -> None:
        """Write the record in order of target and version, one line for each release."""
        rows = sorted(self.rows.values(), key=lambda row: in_order((row["target"], row["version"])))
        without = [
            {"target": target, "version": version, "lacks": self.without[target, version]}
            for target, version in sorted(self.without.keys() - self.rows.keys(), key=in_order)
        ]
        document = {
            **{"schema": SCHEMA, "upstreamed": upstreamed(rows), "again": dict(sorted(self.again.items()))},
            **{"without": without},
        }
        head = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in document.items())
        body = ",\n".join(json.dumps(row) for row in rows)
        (root / MATRIX).write_text(f'{{{head}"rows": [\n{body}\n]}}\n', encoding="utf-8")

    def unfinished(self, release: Release, catalog: Catalog) -> bool:
        """Return whether the release has a row without a patch for it or for a tree inside it."""
        row = self.rows.get(release.key)
        names = {row["target"], *row.get("inside", {})} if row else set()
        return (
            any(patch.target in names and patch.id not in row["states"] for patch in catalog.patches.values())
            if row
            else False
        )

    def lacks(self, release: Release) -> bool:
        """Return whether the release is still to be tried."""
        if release.archive and release.archive.filename in self.again:
            return False
        row = self.rows.get(release.key, {"states": {"": State.DRIFTED}})
        return not {*FAILS, "fail"}.isdisjoint([*row["states"].values(), *row.get("verified", {}).values()])


def upstreamed(rows: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the patches whose change the newest releases of their target have, and the first of these releases."""
    found: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: in_order((row["target"], row["version"]))):
        for patch, state in row["states"].items():
            if patch.partition("/")[0] != row["target"]:
                continue  # of a tree inside: the release of that tree has its own row
            if state != State.UPSTREAMED:
                found.pop(patch, None)
            else:
                since = found.get(patch, {"since": row["version"]})["since"]
                found[patch] = {"patch": patch, "since": since, "newest": row["version"]}
    return [found[patch] for patch in sorted(found)]


def changes(before: Sequence[dict[str, str]], after: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield a note on each patch that upstream has taken, or has lost again, since the record before."""
    old, new = ({one["patch"]: one for one in record} for record in (before, after))
    for patch in sorted(new.keys() - old.keys()):
        yield f"{patch}: upstream has an equivalent since {new[patch]['since']}"
    for patch in sorted(old.keys() - new.keys()):
        yield f"{patch}: upstream no longer has the equivalent of {old[patch]['since']} to {old[patch]['newest']}"


def without_source(matrix: Matrix, before: Set[tuple[str, str]]) -> Iterator[str]:
    """Yield a note on each release without a source on the index that the record did not have before."""
    for target, version in sorted(matrix.without.keys() - before - matrix.rows.keys(), key=in_order):
        lacks = matrix.without[target, version]
        command = f"`python -m tools.watch --git {target}=={version}`"
        yield f"{target} {version}: the package index has no {lacks}; {command} takes its tag"


def in_order(key: tuple[str, str]) -> tuple[str, Version]:
    """Return the sort key of a release."""
    return key[0], Version(key[1])


# --- what there is ---------------------------------------------------------------------------------------------------


def pinned(target: Target) -> Iterator[Release]:
    """Return the releases whose archives the catalog pins."""
    return (Release(target, archive.version, archive) for archive in target.archives)


def unpinned(target: Target, catalog: Catalog, *, pre: bool) -> tuple[list[Release], dict[tuple[str, str], str]]:
    """Return releases on the index without a pinned archive, and those that have no archive like the others.

    An archive is like the last one that is pinned of its project: its name differs in the version alone. A project
    whose every release is another target's (FlashInfer's CUTLASS) is looked at there.
    """
    found = []
    without: dict[tuple[str, str], str] = {}
    known = {archive.filename for other in catalog.targets.values() for archive in other.archives}
    for project in dict.fromkeys(archive.project for archive in target.archives):
        own = [archive for archive in target.archives if archive.project == project]
        if any(belongs(other, project) for other in catalog.targets.values() if other.name != target.name):
            continue
        oldest = min(Version(version_of(archive)) for archive in own)
        shape = shape_of(own[-1].filename, version_of(own[-1]))
        lacking: dict[str, bool] = {}
        with index.project_files(project) as (files, _):
            sources = [file for file in files if file.version and file.package_type in ("sdist", "wheel")]
        for file in sources:
            release = str(file.version)
            if file.is_yanked or Version(release) < oldest or (Version(release).is_prerelease and not pre):
                continue
            fits = shape_of(file.filename, release) == shape
            lacking[release] = lacking.get(release, True) and not fits
            if fits and file.filename not in known:
                digest = file.digests.get("sha256", "")
                archive = replace(own[-1], version=release, filename=file.filename, sha256=digest)
                if not belongs(target, project):
                    archive = replace(archive, holds=f"what comes with {project} {release}")
                found.append(Release(target, release, archive, pinned=False))
        if belongs(target, project):
            without |= {(target.name, v): shape.format(v) for v, lacks in lacking.items() if lacks}
    return found, without | dict(wheels_alone(target, pre=pre))


def wheels_alone(target: Target, *, pre: bool) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the releases of a project that has wheels without the sources, and whose commit is not pinned."""
    if not target.wheels:
        return
    oldest = min(map(Version, target.commits))
    with index.project_files(target.wheels) as (files, _):
        named = {file.version for file in files if file.version and not file.is_yanked}
    for version in sorted(map(Version, named)):
        if version > oldest and str(version) not in target.commits and (pre or not version.is_prerelease):
            yield (target.name, str(version)), f"{target.wheels}-{version}.tar.gz"


def tagged(target: Target, *, pre: bool) -> Iterator[Release]:
    """Yield the releases that have a tag, from the oldest that is pinned on; the pinned commits if none has one."""
    if not target.tag:
        yield from (Release(target, version, None) for version in target.commits)
        return
    before, _, after = target.tag.format(version="\0", release="\0").partition("\0")
    oldest = min(Version(version) for version in (*(archive.version for archive in target.archives), *target.commits))
    for tag in git.tags(target.git):
        if tag.startswith(before) and tag.endswith(after):
            text = tag.removeprefix(before).removesuffix(after)
            try:
                version = Version(text)
            except InvalidVersion:
                continue
            if "{release}" in target.tag and text.count(".") == 1:
                text += ".0"
            if version >= oldest and (pre or not version.is_prerelease):
                yield Release(target, text, None)


def belongs(target: Target, project: str) -> bool:
    """Return whether the project's versions are the target's releases: its archives have the versions that they
    hold."""
    own = [archive for archive in target.archives if archive.project == project]
    return bool(own) and all(archive.version == version_of(archive) for archive in own)


def version_of(archive: Archive) -> str:
    """Return the project's version in an archive's name."""
    _, version, _ = parse_filename(archive.filename, archive.project)
    assert version, archive.filename
    return version


def shape_of(filename: str, version: str) -> str:
    """Return ``vllm-{}.tar.gz`` for vllm-0.33.0.tar.gz."""
    return filename.replace(f"-{version}", "-{}", 1)


# --- trying one ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """Result of a release: its row, and its failures, each with the subject and the reason."""

    release: Release
    row: dict[str, Any] | None
    wrong: tuple[tuple[str, str], ...]
    inside: tuple[tuple[str, str, str], ...] = ()
    """Trees that it contains: target, version, directory."""
    decisions: tuple[decisions.Decision, ...] = ()
    """What a person must decide, one for each patch that drifted."""
    commit: str = ""
    """Commit of a tag."""


def attempt(
    release: Release, catalog: Catalog, verifications: Sequence[VerifyRequest], matrix: Matrix, *, answering: bool
) -> Tried:
    """Fetch the release, try each patch, verify, and record what doctor reads of it.

    ``answering``: also what its build makes of each arch list, which takes minutes.
    """
    archive, target = release.archive, release.target
    if archive and not archive.sha256:
        return Tried(release, None, (("fetch", "the package index states no SHA-256"),))
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        # With the archive in question alone, so that it is what comes.
        of = replace(target, archives=(archive,) if archive else ())
        try:
            got = fetch(of, release.version, tree, progress=progress.silent)
            tried = examine(tree, release, got.source, catalog, verifications, matrix.rows)
            if tried.row is None or (release.foreign and tried.row["version"] in versions_of(target.name)):
                return tried
            releases.add(releases.look(tree, tried.row["version"]))  # first: the other recognizes the release by it
            if answering:
                answers.add(answers.look(tree, tried.row["version"]))
            return replace(tried, commit="" if archive else git.head(tree))
        except Fp4PatchError as error:
            return Tried(release, None, (("fetch", error.message),))


def examine(
    tree: Path,
    release: Release,
    source: str,
    catalog: Catalog,
    verifications: Sequence[VerifyRequest],
    rows: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Tried:
    """Try each patch on a pristine tree of the release, and verify; the tree is pristine again at the end.

    ``rows`` are those of the matrix: a drift is compared with an older release that fits.
    """
    found, *inside = status([tree])
    patches = [patch for part in (found, *inside) for patch in part.patches]
    wrong = [(f"{patch.patch} {patch.state}", patch.because) for patch in patches if patch.state in FAILS]
    version = found.version if release.foreign else release.version
    if not version:
        return Tried(release, None, (("fetch", "the tree does not state its version"),))
    drifted = [(p, part.root) for part in (found, *inside) for p in part.patches if p.state is State.DRIFTED]
    due = tuple(decisions.decisions(release.target, version, tree, drifted, catalog.patches, rows))
    verified = {}
    for options in verifications:
        if release.target.name in catalog.variant(options.variant or "").targets:
            said = list(failures(tree, options))
            verified[options.variant] = "fail" if said else "pass"
            news = [reason for patch, reason in said if patch not in {p.patch for p, _ in drifted}]
            wrong += [(f"verify --variant {options.variant}", reason) for reason in news]
    row: dict[str, Any] = {
        "target": release.target.name,
        "version": version,
        "source": source,
        "states": {p.patch: State.APPLIED if p.state is State.PRISTINE else p.state for p in patches},
    }
    if inside:
        row["inside"] = {part.target: part.version for part in inside}
    if verified:
        row["verified"] = verified
    places = ((part.target, part.version, part.root.relative_to(found.root).as_posix()) for part in inside)
    return Tried(release, row, tuple(wrong), tuple(places), due)


def complete(release: Release, row: dict[str, Any], catalog: Catalog) -> Tried:
    """Fetch a release that has a row, and try the patches that its row does not have yet.

    The row's verdicts stay as long as none of these patches is one that applies, has probes, and is in the variant.
    """
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        try:
            fetch(release.target, release.version, tree, progress=progress.silent)
            parts = identify_all([tree], catalog)
            with locked(parts) as every:
                tried = [state for tree in every for state in try_patches(tree, catalog)]
        except Fp4PatchError as error:
            return Tried(release, None, (("fetch", error.message),))
    found = [patch for patch in tried if patch.patch not in row["states"]]
    new = {p.patch: State.APPLIED if p.state is State.PRISTINE else p.state for p in found}
    compiled = {name for name, state in new.items() if state is State.APPLIED and catalog.patches[name].probes}
    verified = {
        name: verdict
        for name, verdict in row.get("verified", {}).items()
        if compiled.isdisjoint(patch.id for target in catalog.targets for patch in patches_of(name, target, catalog))
    }
    kept = {key: value for key, value in row.items() if key != "verified"}
    states = dict(
        sorted((row["states"] | new).items(), key=lambda item: (item[0].partition("/")[0] != row["target"], item))
    )
    wrong = [(f"{patch.patch} {patch.state}", patch.because) for patch in found if patch.state in FAILS]
    return Tried(release, kept | {"states": states} | ({"verified": verified} if verified else {}), tuple(wrong))


def patches_of(name: str, target: str, catalog: Catalog) -> Sequence[Patch]:
    """Return the patches of a variant for a target, if it is for that target."""
    variant = catalog.variant(name)
    return catalog.patches_of(variant, target) if target in variant.targets else ()


def failures(tree: Path, options: VerifyRequest) -> Iterator[tuple[str, str]]:
    """Yield the reasons why the variant does not verify on the tree, each with the patch that is refused, if one is.

    The tree is pristine before and after.
    """
    try:
        applied = apply([tree], options.variant)
        for problem in (problem for part in applied.trees for problem in part.problems):
            place = f"{problem.file}:{problem.line}" if problem.line else problem.file
            refused = f"{problem.patch} is refused: {place}: expected {problem.expected}, found {problem.found}"
            yield problem.patch, refused
        if applied.refused:
            return
        for report in verify_trees([tree], options, on_progress=lambda _: None):
            yield from (("", reason) for reason in reasons(report))
    except Fp4PatchError as error:
        yield "", error.message
    finally:
        revert([tree])


def reasons(report: VerifyReport) -> Iterator[str]:
    """Yield each probe that failed, and every other failure."""
    if not report.verdict.failed:
        return
    yield from (f"{p.nearest or p.file}: expected {p.expected}, found {p.found}" for p in report.problems)
    yield from (f"{r.probe} on {r.arch}: {reason(r)}" for r in report.results if r.verdict.failed)
    yield from executions(report.executed, failed=True)
    if not report.results:
        yield f"{report.target}: nothing was checked"


# --- writing it down -------------------------------------------------------------------------------------------------


def pin(root: Path, target: str, archive: Archive) -> None:
    """Add the archive to the target's file, before the first of a later version; no other byte changes."""
    file = root / "patches" / target / "target.toml"
    version = Version(archive.version)
    text = file.read_text(encoding="utf-8")
    if RELEASES in text and any(one.project == archive.project for one in load(root).target(target).archives):
        head, table, releases = text.partition(RELEASES)
        lines = releases.splitlines(keepends=True)
        later = (at for at, line in enumerate(lines) if line == "]\n" or Version(line.split('"')[1]) > version)
        lines.insert(next(later), f'  {{ version = "{archive.version}", sha256 = "{archive.sha256}" }},\n')
        file.write_text(head + table + "".join(lines), encoding="utf-8")
        forget()
        return
    head, *entries = text.split(ENTRY)
    later = (at for at, text in enumerate(entries) if Version(tomllib.loads(f"[a]\n{text}")["a"]["version"]) > version)
    at = next(later, len(entries))
    keys = ["version", "project", "filename", "sha256", "subtree", *(["holds"] if archive.holds else [])]
    entries.insert(at, "".join(f"{key} = {json.dumps(getattr(archive, key))}\n" for key in keys))
    file.write_text(ENTRY.join([head, *entries]), encoding="utf-8")
    forget()


def pin_commit(root: Path, target: str, version: str, commit: str) -> None:
    """Add the commit of a release to the target's file, before that of a later version; no other byte changes."""
    file = root / "patches" / target / "target.toml"
    head, table, rest = file.read_text(encoding="utf-8").partition(COMMITS)
    if not table:
        file.write_text(f'{head}{COMMITS}"{version}" = "{commit}"\n', encoding="utf-8")
    else:
        lines = rest.splitlines(keepends=True)
        own = next((at for at, line in enumerate(lines) if not line.startswith('"')), len(lines))
        later = (at for at in range(own) if Version(lines[at].split('"')[1]) > Version(version))
        lines.insert(next(later, own), f'"{version}" = "{commit}"\n')
        file.write_text(head + table + "".join(lines), encoding="utf-8")
    forget()


def widen(root: Path, patch: Patch, version: str) -> str:
    """Add a release that a patch was tried on to its ``applies``; return a note if that is left to a person."""
    if covers(patch.applies, version):
        return ""
    file = root / "patches" / patch.id / "patch.toml"
    upper = re.search(r"<=([^,\s]+)", patch.applies)
    if not upper or Version(upper[1]) > Version(version):
        return f"{patch.id}: `applies` is {patch.applies}, without {version}, which was tried"
    line = f'applies = "{patch.applies}"\n'
    text = file.read_text(encoding="utf-8")
    assert text.count(line) == 1, f"{file} has its `applies` in another form than {line}"
    file.write_text(text.replace(line, line.replace(upper[0], f"<={version}")), encoding="utf-8")
    forget()
    return ""


def record(tried: Tried, matrix: Matrix, *, completed: bool = False) -> tuple[list[str], list[Release]]:
    """Record the row, pin unpinned archives, and return the messages and the releases found inside."""
    release, row = tried.release, tried.row
    if row is None:
        return [], []
    key, archive = (row["target"], row["version"]), release.archive
    if completed:
        matrix.rows[key] = row
        return [], []
    if release.foreign and key[1] in versions_of(release.target.name):
        if not tried.wrong:
            matrix.again[release.foreign.filename] = " ".join(key)
        return [f"{release.foreign.filename} holds {' '.join(key)}, for which another archive is pinned"], []
    if (old := matrix.rows.get(key)) and "verified" in old and old["states"] == row["states"]:
        row = row | {"verified": old["verified"] | row.get("verified", {})}
    matrix.rows[key] = row
    root = load().root
    fits = [p for p in load().patches.values() if p.target == key[0] and row["states"].get(p.id, FAILS[0]) not in FAILS]
    notes = [note for patch in fits if (note := widen(root, patch, key[1]))]
    if tried.commit and key[1] not in release.target.commits:
        pin_commit(root, *key, tried.commit)
        notes.append(f"{' '.join(key)} is pinned: commit {tried.commit}")
    if archive is None or release.pinned:
        return notes, []
    pins = [Release(release.target, key[1], replace(archive, version=key[1]))]
    for name, version, folder in tried.inside:
        target = load().target(name)
        if version and version not in versions_of(name):
            part = f"{archive.subtree}/{folder}".removeprefix("/")
            holds = f"what comes with {archive.project} {release.version}"
            inner = replace(archive, version=version, subtree=part, holds=holds)
            pins.append(Release(target, version, inner))
    for new in pins:
        assert new.archive
        pin(load().root, new.target.name, new.archive)
    return [*notes, *(f"{one.target.name} {one.version} is pinned: {archive.filename}" for one in pins)], pins[1:]


def versions_of(target: str) -> set[str]:
    """Return the releases whose archives are pinned by now."""
    return {archive.version for archive in load().target(target).archives}


def summary(wrong: Sequence[tuple[str, str, str]], tried: Sequence[Tried], notes: Sequence[str]) -> str:
    """Return the text of the job's summary or pull request: decisions, failures, successes, and notes."""
    due = [str(decision) for one in tried for decision in one.decisions]
    text = "\n".join(["## To decide\n", *due]) + "\n" if due else ""
    good = [one for one in tried if not one.wrong]
    if wrong:
        text += "## Wrong\n\n| release | what | why |\n|---|---|---|\n"
        text += "".join(f"| {' | '.join(map(cell, line))} |\n" for line in wrong)
    if good:
        text += "\n## Fits\n\n| release | patches | verified |\n|---|---|---|\n"
    for one in good:
        assert one.row
        states = ", ".join(f"{patch} {state}" for patch, state in one.row["states"].items())
        text += f"| {name_of(one)} | {states} | {', '.join(one.row.get('verified', {}))} |\n"
    if not (wrong or good):
        text += "Nothing is new.\n"
    return text + ("\n" + "".join(f"- {note}\n" for note in notes) if notes else "")


def name_of(tried: Tried) -> str:
    """Return ``vllm 0.33.0``; with the archive's name, if that does not contain it."""
    found = tried.row["version"] if tried.row else tried.release.version
    inside = f" in {tried.release.foreign.filename}" if tried.release.foreign else ""
    return f"{tried.release.target.name} {found}{inside}"


def cell(text: str) -> str:
    """Return one line that a table of Markdown shows as it is."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


# --- the command -----------------------------------------------------------------------------------------------------


def choose(
    options: argparse.Namespace,
    releases: dict[tuple[str, str], Release],
    named: Sequence[tuple[str, str]],
    matrix: Matrix,
    catalog: Catalog,
) -> list[Release]:
    """Return the releases to try, in order. UsageError: there is no variant of a name that is to be verified."""
    for variant in options.verify or ():
        catalog.variant(variant)

    def wanted(key: tuple[str, str], release: Release) -> bool:
        if options.missing:
            return (not named or key in named) and matrix.unfinished(release, catalog)
        return key in named if named else bool(options.all) or matrix.lacks(release)

    chosen = [release for key, release in releases.items() if wanted(key, release)]
    return sorted(chosen, key=lambda release: in_order((release.target.name, release.version)))


def survey(
    targets: Iterable[Target], options: argparse.Namespace, matrix: Matrix
) -> tuple[dict[tuple[str, str], Release], list[tuple[str, str, str]]]:
    """Return the releases of the targets by their names in the matrix, and what could not be looked up."""
    known: dict[tuple[str, str], Release] = {}
    wrong: list[tuple[str, str, str]] = []
    for target in targets:
        try:
            found, without = unpinned(target, load(), pre=options.pre)
            tags = [*tagged(target, pre=options.pre)] if options.git else []
        except Fp4PatchError as error:
            wrong.append((target.name, "releases", error.message))
            found, tags = [], []
        else:
            matrix.without = {key: kind for key, kind in matrix.without.items() if key[0] != target.name} | without
        for release in (*pinned(target), *found, *tags):
            known.setdefault(release.key, release)
    return known, wrong


def main(options: argparse.Namespace) -> int:
    """Find, try and write releases; write after each one, so that nothing is lost if the run is stopped."""
    catalog = load()
    if options.claims:
        return finished([*claims.look(catalog, claims.read(catalog.root))], [], [])
    matrix = Matrix.read(catalog.root / MATRIX)
    taken, lacking = upstreamed(matrix.rows.values()), {*matrix.without}
    named: list[tuple[str, str]] = [
        (name, version) for name, _, version in (n.partition("==") for n in options.releases)
    ]
    targets = [catalog.target(name) for name in dict.fromkeys(name for name, _ in named)] or catalog.targets.values()
    known, wrong = survey(targets, options, matrix)
    for name in named:
        if name not in known:
            raise UsageError(f"there is no release {'=='.join(name)}", help="--git also takes what has only a tag")
    if not named:
        wrong += of_pytorch(catalog.root)
    chosen = choose(options, known, named, matrix, catalog)
    of_images = [variant.name for variant in catalog.variants.values() if variant.image]
    tried: list[Tried] = []
    notes: list[str] = []
    matrix.write(catalog.root)
    while chosen:
        release = chosen.pop(0)
        if options.missing:
            one = complete(release, matrix.rows[release.key], catalog)
        else:
            names = options.verify
            if names is None:
                names = of_images if named or matrix.lacks(release) else []
            requests = [VerifyRequest(variant=name, execute=options.execute) for name in names]
            one = attempt(release, load(), requests, matrix, answering=options.answers)
        said, inside = record(one, matrix, completed=options.missing)
        tried = [*tried, one]
        notes = [*notes, *said]
        chosen = [*inside, *chosen]
        matrix.write(catalog.root)
        wrong += [(name_of(one), what, why) for what, why in one.wrong]
        for line in one.wrong or [("fits",)]:
            print(name_of(one), *line, sep=": ", flush=True)  # noqa: T201 - a script
    notes += [*changes(taken, upstreamed(matrix.rows.values())), *without_source(matrix, lacking)]
    return finished(wrong, tried, notes)


def finished(wrong: Sequence[tuple[str, str, str]], tried: Sequence[Tried], notes: Sequence[str]) -> int:
    """Write the summary, for the job too, and return the exit status."""
    text = summary(wrong, tried, notes)
    if step := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(step).open("a", encoding="utf-8") as file:
            file.write(text)
    print(f"\n{text}", end="")  # noqa: T201 - a script
    return 1 if wrong else 0


def of_pytorch(root: Path) -> list[tuple[str, str, str]]:
    """Read the releases of PyTorch that are newer than the record, and return what is wrong with it."""
    try:
        return [(f"{pytorch.PROJECT} {release}", "arch lists", reason) for release, reason in pytorch.look(root)]
    except Fp4PatchError as error:
        return [(pytorch.PROJECT, "releases", error.message)]


def variants(text: str) -> list[str]:
    """Parse a list of names; it can be empty."""
    return [] if text == "none" else text.split(",")


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of these words; by default those of the command line."""
    parser = argparse.ArgumentParser(
        description="Bring the records up to date with new releases, or name what a person must decide."
    )
    parser.add_argument("releases", nargs="*", metavar="TARGET==VERSION", help="only these, whether new or not")
    parser.add_argument("--all", action="store_true", help="every release, not only what is new")
    parser.add_argument("--missing", action="store_true", help="of what the matrix has, only the patches that it lacks")
    parser.add_argument("--claims", action="store_true", help="only what pages say of releases")
    parser.add_argument("--git", action="store_true", help="also releases that have a tag, and no archive")
    parser.add_argument("--pre", action="store_true", help="also pre-releases")
    parser.add_argument(
        "--verify",
        type=variants,
        metavar="NAMES",
        help="variants to verify on each release, or none; default: on what is new, each that pins an image",
    )
    parser.add_argument(
        "--no-execute",
        dest="execute",
        action="store_false",
        help="verify without running all inputs through the machine code",
    )
    parser.add_argument(
        "--no-answers",
        dest="answers",
        action="store_false",
        help="leave out records/answers.json, for which each build is evaluated for minutes",
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    try:
        sys.exit(main(parsed()))
    except Fp4PatchError as error:
        sys.exit(f"error: {error.message}\n  help: {error.help}")
