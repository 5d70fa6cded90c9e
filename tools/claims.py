"""Statements of pages about other projects' releases, and the texts of these releases that show them."""

import tomllib
import zipfile
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from fp4patch.catalog.manifest import Catalog
from fp4patch.core import progress
from fp4patch.core.errors import Fp4PatchError, SourceError
from fp4patch.sources.archive import read_files
from fp4patch.sources.index import download, project_files
from fp4patch.sources.wheels import published

RECORD = "records/claims.toml"
NEWEST = "newest"


@dataclass(frozen=True)
class Claim:
    """A statement of a page, and the text of a file that some releases have, and others do not: see the record."""

    page: str
    says: str
    project: str
    file: str
    text: str
    having: tuple[str, ...]
    lacking: tuple[str, ...] = field(default=())


def read(root: Path) -> list[Claim]:
    """Return the claims of the record."""
    rows = tomllib.loads((root / RECORD).read_text(encoding="utf-8"))["claim"]
    return [Claim(**row | {key: tuple(row.get(key, ())) for key in ("having", "lacking")}) for row in rows]


def look(catalog: Catalog, claims: Sequence[Claim]) -> Iterator[tuple[str, str, str]]:
    """Look each claim up, and yield those that are not so: release, page, and what is wrong."""
    asked = sorted({(claim.project, release) for claim in claims for release in (*claim.having, *claim.lacking)})
    for project, release in asked:
        own = [claim for claim in claims if claim.project == project and release in (*claim.having, *claim.lacking)]
        try:
            version, files = contents(catalog, project, release, {claim.file for claim in own})
        except Fp4PatchError as error:
            yield f"{project} {release}", RECORD, error.message
            continue
        for claim in own:
            if problem := wrong(claim, files.get(claim.file), has=release in claim.having):
                yield f"{project} {version}", claim.page, f"{claim.says!r}: {problem}"


def wrong(claim: Claim, content: bytes | None, *, has: bool) -> str:
    """Return what is wrong with a claim about a file; nothing if it holds."""
    if has and content is None:
        return f"there is no {claim.file}"
    found = claim.text.encode() in (content or b"")
    return "" if found == has else f"{claim.file} has {'no' if has else 'a'} {claim.text!r}"


def contents(catalog: Catalog, project: str, release: str, names: Set[str]) -> tuple[str, dict[str, bytes]]:
    """Return the version of a release, and its files of these names: of an archive of the catalog, else of a wheel."""
    if target := catalog.targets.get(project):
        version = target.archives[-1].version if release == NEWEST else release
        archive = target.archive(version)
        if not archive:
            raise SourceError(f"the catalog pins no archive of {project} {version}", help=f"see {RECORD}")
        return version, read_files(download(archive, progress.silent), archive.subtree, names)
    version = newest(project) if release == NEWEST else release
    with published(f"{project}=={version}", "x86_64") as (_, content, _), zipfile.ZipFile(content) as wheel:
        return version, {name: wheel.read(name) for name in names & {*wheel.namelist()}}


def newest(project: str) -> str:
    """Return the newest release on the package index that has a wheel."""
    with project_files(project) as (files, _):
        named = {file.version for file in files if file.version and file.package_type == "wheel" and not file.is_yanked}
    finals = [version for name in named if not (version := Version(name)).is_prerelease and not version.local]
    if not finals:
        raise SourceError(f"the index has no wheel of {project}", help=f"see {RECORD}")
    return str(max(finals))
