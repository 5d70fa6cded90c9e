"""Published wheels, which are kept in the cache for the next question where the index has their SHA-256."""

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

import requests
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version
from pypi_simple import DistributionPackage

from fp4patch.catalog.target import Archive
from fp4patch.core.errors import SourceError, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.wording import suggested
from fp4patch.sources.index import CHECK_NETWORK, cause_of, download, project_files


@contextmanager
def published(
    text: str, machine: str, known: Collection[str] = (), on_progress: OnProgress = lambda _: None
) -> Iterator[tuple[str, IO[bytes], int]]:
    """Yield name, content and size of a published wheel: of a requirement for a machine, or of a wheel by its name.

    ``machine`` is ``aarch64`` or ``x86_64``; ``known`` are names of projects, of which one may have been meant.
    SourceError: no index answers. UsageError: there is no such wheel.
    """
    project = text.partition("-")[0] if text.endswith(".whl") else Requirement(text).name
    with _files_of(project, known) as (files, session):
        wheels = {file.filename: file for file in files if file.package_type == "wheel"}
        name = text if text in wheels else _chosen(list(wheels), text, machine)
        if not name:
            help_text = _help(project, list(wheels), known)
            raise UsageError(f"the index has no wheel of {text} for {machine}", help=help_text)
        try:
            with _opened(project, wheels[name], session, on_progress) as file:
                yield name, file, os.fstat(file.fileno()).st_size
        except requests.RequestException as error:
            raise SourceError(f"cannot read {name}: {cause_of(error)}", help=CHECK_NETWORK) from error


@contextmanager
def _files_of(project: str, known: Collection[str]) -> Iterator[tuple[list[DistributionPackage], requests.Session]]:
    """Yield what ``project_files`` yields; where no index has the project, advise a known one of nearly its name."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(project_files(project))
        except SourceError as error:
            raise SourceError(error.message, help=_or_known(project, known, error.help)) from error
        yield found


def _help(project: str, names: list[str], known: Collection[str]) -> str:
    """Return the advice about a release without a wheel: another project of nearly that name, or the newest release."""
    versions = {version for name in names if (version := _version(name))}
    finals = [version for version in versions if not version.is_prerelease] or list(versions)
    newest = f"the newest release of {project} with a wheel is {max(finals)}" if finals else f"{project} has no wheels"
    return _or_known(project, known, f"{newest}; or name the wheel that you have")


def _or_known(project: str, known: Collection[str], otherwise: str) -> str:
    """Return advice, after the known project of nearly that name unless this is one."""
    return otherwise if canonicalize_name(project) in known else suggested(project, known, otherwise)


def _version(name: str) -> Version | None:
    try:
        return parse_wheel_filename(name)[1]
    except InvalidWheelFilename:
        return None


@contextmanager
def _opened(
    project: str, wheel: DistributionPackage, session: requests.Session, on_progress: OnProgress
) -> Iterator[IO[bytes]]:
    if checksum := wheel.digests.get("sha256"):
        pin = Archive(
            version=wheel.version or "0", project=project, filename=wheel.filename, sha256=checksum, subtree=""
        )
        with download(pin, on_progress).open("rb") as file:
            yield file
        return
    with session.get(wheel.url, stream=True, timeout=60) as answer, tempfile.TemporaryFile() as whole:
        answer.raise_for_status()
        for piece in answer.iter_content(1 << 20):
            whole.write(piece)
        whole.seek(0)
        yield whole


def _chosen(names: list[str], text: str, machine: str) -> str:
    """Return the newest wheel of a requirement for a machine, the one for any Python first; empty if there is none."""
    requirement = None if text.endswith(".whl") else Requirement(text)
    fitting: list[tuple[Version, bool, bool, str]] = []
    for name in names:
        try:
            _, version, _, tags = parse_wheel_filename(name)
        except InvalidWheelFilename:
            continue
        fits = any(_is_for(tag.platform, machine) for tag in tags)
        if fits and requirement and requirement.specifier.contains(version):
            pythons = {(tag.interpreter, tag.abi) for tag in tags}
            any_python = any(abi in ("abi3", "none") for _, abi in pythons)
            fitting.append((version, any_python, ("cp312", "cp312") in pythons, name))
    return max(fitting)[3] if fitting else ""


def _is_for(platform: str, machine: str) -> bool:
    return platform == "any" or ("linux" in platform and platform.endswith(machine))
