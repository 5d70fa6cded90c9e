"""Published wheels that are read where they are: by ranges of bytes, or as a whole from an index that has none.

The parts of a wheel that are read have its checksums; its SHA-256 is not compared, since not all of it is read.
"""

import io
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, cast

import requests
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from fp4patch.core.errors import SourceError, UsageError
from fp4patch.core.wording import suggested
from fp4patch.sources.index import CHECK_NETWORK, cause_of, project_files

_BLOCK = 1 << 22
"""Bytes that are read at once, and kept: a reader of a member goes forward."""


class _Ranged(io.RawIOBase):
    """A file on a server that answers with ranges of bytes."""

    def __init__(self, url: str, session: requests.Session, size: int) -> None:
        self._url = url
        self._session = session
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: object) -> int:
        """Read what the buffer has room for; OSError where the server does not answer."""
        view = memoryview(cast("bytearray", buffer))
        first, end = self._at, min(self._at + len(view), self._size)
        if first >= end:
            return 0
        answer = self._session.get(self._url, headers={"Range": f"bytes={first}-{end - 1}"}, timeout=60)
        if answer.status_code != 206 or len(answer.content) != end - first:
            raise OSError(f"the index does not return bytes {first} to {end}: {answer.status_code}")
        view[: end - first] = answer.content
        self._at = end
        return end - first


@contextmanager
def published(text: str, machine: str, known: Collection[str] = ()) -> Iterator[tuple[str, IO[bytes], int]]:
    """Yield name, content and size of a published wheel: of a requirement for a machine, or of a wheel by its name.

    ``machine`` is ``aarch64`` or ``x86_64``; ``known`` are names of projects, of which one may have been meant.
    SourceError: no index answers. UsageError: there is no such wheel.
    """
    project = text.partition("-")[0] if text.endswith(".whl") else Requirement(text).name
    with project_files(project) as (files, session):
        urls = {file.filename: file.url for file in files if file.package_type == "wheel"}
        name = text if text in urls else _chosen(list(urls), text, machine)
        if not name:
            raise UsageError(f"the index has no wheel of {text} for {machine}", help=_help(project, list(urls), known))
        try:
            with _opened(urls[name], session) as (file, size):
                yield name, file, size
        except requests.RequestException as error:
            raise SourceError(f"cannot read {name}: {cause_of(error)}", help=CHECK_NETWORK) from error


def _help(project: str, names: list[str], known: Collection[str]) -> str:
    """Return the advice about a release without a wheel: another project of nearly that name, or the newest release."""
    versions = {version for name in names if (version := _version(name))}
    finals = [version for version in versions if not version.is_prerelease] or list(versions)
    newest = f"the newest release of {project} with a wheel is {max(finals)}" if finals else f"{project} has no wheels"
    otherwise = f"{newest}; or name the wheel that you have"
    return otherwise if canonicalize_name(project) in known else suggested(project, known, otherwise)


def _version(name: str) -> Version | None:
    try:
        return parse_wheel_filename(name)[1]
    except InvalidWheelFilename:
        return None


@contextmanager
def _opened(url: str, session: requests.Session) -> Iterator[tuple[IO[bytes], int]]:
    with session.get(url, headers={"Range": "bytes=0-0"}, stream=True, timeout=60) as answer:
        answer.raise_for_status()
        total = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range", ""))
        if answer.status_code == 200 or not total:
            with tempfile.TemporaryFile() as file:
                shutil.copyfileobj(answer.raw, file, 1 << 20)
                size = file.tell()
                file.seek(0)
                yield cast("IO[bytes]", file), size
            return
    yield cast("IO[bytes]", io.BufferedReader(_Ranged(url, session, int(total[1])), _BLOCK)), int(total[1])


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
