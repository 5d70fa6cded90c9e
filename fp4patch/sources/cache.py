"""The user's cache folder, and the hash by which a file in it is known."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Where downloads and compilations are kept: ``FP4PATCH_CACHE``, else the user's cache folder."""
    return Path(os.environ.get("FP4PATCH_CACHE") or platformdirs.user_cache_path("fp4patch"))


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
