"""What tests of several parts share."""

from __future__ import annotations

import zipfile
from pathlib import Path


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path
