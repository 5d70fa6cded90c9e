"""What tests of several parts share."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Self


class NoProgress:
    """A progress bar that shows nothing."""

    def __init__(self, _total: int | None = None) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def update(self, increment: int) -> None:
        pass


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path
