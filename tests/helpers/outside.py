"""Directories of patches outside of the catalog, made from two texts of each file."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from fp4patch.tree.files import unified

LINK = "https://github.com/ml-explore/mlx/pull/1"


def diff_of(tree: Path, after: Mapping[str, str]) -> str:
    """Return the diff that gives files of a tree other texts."""
    return "".join(
        f"diff --git a/{path} b/{path}\n{unified(path, (tree / path).read_bytes(), text.encode())}"
        for path, text in after.items()
    )


def outside(folder: Path, target: str, diff: str, more: str = "") -> Path:
    """Write the directory of a patch."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pr.diff").write_bytes(diff.encode())
    digest = hashlib.sha256(diff.encode()).hexdigest()
    (folder / "patch.toml").write_text(
        f'target = "{target}"\ntitle = "a change"\nreason = "a test"\nlink = "{LINK}"\napplies = ">=0.1"\n'
        f'retire = "upstream has it"\n{more}\n[[edits]]\nop = "diff"\nfile = "pr.diff"\nsha256 = "{digest}"\n'
    )
    return folder
