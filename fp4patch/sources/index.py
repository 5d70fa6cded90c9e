"""Download of one pinned file from the package index that pip is configured for, with a check of its SHA-256.

The pin is the file's name and hash. The index only provides its location, so any mirror will do. The files of a project
can be listed to pin more of them.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from pypi_simple import (
    PYPI_SIMPLE_ENDPOINT,
    DistributionPackage,
    NoSuchProjectError,
    PyPISimple,
    UnsupportedRepoVersionError,
)

from fp4patch.catalog.target import Archive
from fp4patch.core import process
from fp4patch.core.errors import SourceError
from fp4patch.core.progress import OnProgress, Step
from fp4patch.core.store import cache_dir, scratch, sha256

CHECK_NETWORK = "check the network, HTTPS_PROXY and `pip config list`: fp4patch uses pip's index, proxy and certificate"
CHECK_NAME = "check the project's name, and `pip config list` for its index"
UNAVAILABLE = (requests.RequestException, NoSuchProjectError, UnsupportedRepoVersionError, ValueError)
"""Exceptions for an index that does not answer, does not have the project, or returns no list of its files."""


@dataclass(frozen=True)
class IndexConfig:
    """The part of pip's configuration that names the package indexes and how to reach them."""

    urls: tuple[str, ...]
    cert: str | None = None
    proxy: str | None = None


def index_config() -> IndexConfig:
    """Return pip's configuration, from pip itself (files and environment); without pip, from the environment."""
    pip = process.run([sys.executable, "-m", "pip", "config", "list"], limit=None)
    values: dict[str, str] = {}
    for line in () if pip.status else pip.out.splitlines():
        # Lines are `section.key='value'`; pip lists files first and the environment last, which is its precedence.
        key, _, value = line.partition("=")
        if key.startswith(("global.", "install.", "download.", ":env:.")):
            values[key.rpartition(".")[2]] = str(ast.literal_eval(value))
    first = values.get("index-url") or os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX")
    urls = [first or PYPI_SIMPLE_ENDPOINT, *values.get("extra-index-url", "").split()]
    web = tuple(dict.fromkeys(url for url in urls if url.startswith(("http://", "https://"))))
    return IndexConfig(web or (PYPI_SIMPLE_ENDPOINT,), values.get("cert"), values.get("proxy"))


def download(archive: Archive, on_progress: OnProgress) -> Path:
    """Return the archive's path in the cache, and download the archive if it is not there."""
    path = place(archive)
    try:
        if not (path.is_file() and sha256(path) == archive.sha256):
            with project_files(archive.project, archive.filename) as (files, session):
                url = next(file.url for file in files if file.filename == archive.filename)
                _receive(url, session, archive, path, on_progress)
        return path
    except requests.RequestException as error:
        raise SourceError(f"cannot download {archive.filename}: {cause_of(error)}", help=CHECK_NETWORK) from error
    except OSError as error:
        raise SourceError(
            f"the download cannot be kept: {error.filename or path}: {error.strerror or error}",
            help="make room or put that right, or set FP4PATCH_CACHE to another directory",
        ) from error


def _receive(url: str, session: requests.Session, archive: Archive, path: Path, on_progress: OnProgress) -> None:
    with scratch(path.parent, "part-") as folder, session.get(url, stream=True, timeout=60) as answer:
        answer.raise_for_status()
        total = int(answer.headers.get("Content-Length", 0)) or None
        part = folder / archive.filename
        with part.open("wb") as file:
            for piece in answer.iter_content(1 << 20):
                file.write(piece)
                on_progress(Step(file.tell(), total, archive.filename))
        if (got := sha256(part)) != archive.sha256:
            raise SourceError(
                f"{archive.filename} is not the file that was pinned: sha256 {got}, expected {archive.sha256}",
                help="the index returned another file under this name; try another index, and report it",
            )
        part.replace(path)


def place(archive: Archive) -> Path:
    """Return the path in the cache of an archive, which is there if it was downloaded before."""
    return cache_dir() / "archives" / archive.sha256[:16] / archive.filename


@contextmanager
def project_files(project: str, filename: str = "") -> Iterator[tuple[list[DistributionPackage], requests.Session]]:
    """Yield the files of a project, in the order of the first configured index that has it, and a session for them.

    With ``filename`` it is the first index that has this file.
    """
    config = index_config()
    reasons, is_unknown = [], True
    for url in config.urls:
        with requests.Session() as session:
            session.verify = config.cert or True
            session.proxies = {"http": config.proxy, "https": config.proxy} if config.proxy else {}
            try:
                files = PyPISimple(url, session=session).get_project_page(project, timeout=60).packages
            except UNAVAILABLE as error:
                reasons.append(cause_of(error))
                is_unknown &= isinstance(error, NoSuchProjectError)
                continue
            is_unknown = False
            if filename and all(file.filename != filename for file in files):
                reasons.append(f"{project} has no such file there")
                continue
            yield files, session
            return
    raise SourceError(
        f"no package index has {filename or project}: {'; '.join(reasons)}",
        help=CHECK_NAME if is_unknown else CHECK_NETWORK,
    )


def cause_of(error: Exception) -> str:
    """Return the cause of an error in one line: of a failed connection the host and the system's message."""
    text = str(error).partition("\n")[0]
    if isinstance(error, requests.ConnectionError) and (host := re.search(r"host='([^']+)'", text)):
        # Example: [Errno 111] Connection refused
        cause = re.search(r"\[Errno -?\d+\] ([\w ,]+)|(certificate verify failed[\w :-]*)|(timed out)", text)
        by = " through the proxy" if isinstance(error, requests.exceptions.ProxyError) else ""
        return f"no connection to {host[1]}{by}" + (
            f": {next(filter(None, cause.groups()))}" if cause else f" ({text})"
        )
    return text
