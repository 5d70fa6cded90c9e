"""The user's cache folder, and the hash by which a file in it is known."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs

from fp4patch.errors import SourceError


def cache_dir() -> Path:
    """Where downloads and compilations are kept: ``FP4PATCH_CACHE``, else the user's cache folder.

    SourceError: this user has none, as in a container that runs under another user's number.
    """
    try:
        return Path(os.environ.get("FP4PATCH_CACHE") or platformdirs.user_cache_path("fp4patch"))
    except RuntimeError as error:
        raise SourceError(
            "this user has no home folder to keep downloads and compilations in",
            help="set FP4PATCH_CACHE to a folder for them, or HOME",
        ) from error


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
