"""What tests of several parts share."""

from __future__ import annotations

import zipfile
from pathlib import Path

HEARS_INTERRUPTS = ("env", "--default-signal=INT")
"""In front of a command: what a shell starts in the background is deaf to SIGINT."""


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path
