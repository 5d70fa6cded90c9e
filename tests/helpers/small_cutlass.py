"""A CUTLASS of a few real files, for tests that make many trees: it is recognised, and every variant has work there."""

import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

GUARD = "include/cutlass/float_subbyte.h"
CONVERTER = "include/cutlass/numeric_conversion.h"
EPILOGUE = "include/cutlass/epilogue/threadblock/epilogue_with_scaling_factor.h"
ARCHITECTURES = tuple(
    f"include/cutlass/{name}" for name in ("arch/config.h", "detail/helper_macros.hpp", "platform/platform.h")
)
"""Architecture macros that the guard's conditions name; apply evaluates these for each target."""
FILES = ("include/cutlass/cutlass.h", "include/cutlass/version.h", *ARCHITECTURES, GUARD, CONVERTER, EPILOGUE)


def small_cutlass(source: Path, place: Path) -> Path:
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place / name)
    return place


def git(tree: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    run = subprocess.run(["git", *identity, *words], cwd=tree, capture_output=True, text=True, check=True)
    return run.stdout


def checkout(tree: Path) -> Path:
    """Return the tree as a git checkout with one commit."""
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "upstream", "--no-gpg-sign")
    return tree


def everything(root: Path, but: Callable[[str], bool] | None = None) -> dict[str, object]:
    """Return every name below a directory, its mode and owner, its bytes, and when it was last changed.

    With names that do not count, when a directory was changed does not count either.
    """
    found: dict[str, object] = {}
    for path in sorted([root, *root.rglob("*")]):
        name = path.relative_to(root).as_posix()
        if but and but(name):
            continue
        at = path.lstat()
        content: object = ""
        if stat.S_ISREG(at.st_mode):
            content = path.read_bytes() if at.st_size < 1 << 30 else "sparse"
        elif stat.S_ISLNK(at.st_mode):
            content = str(path.readlink())
        when = 0 if but and stat.S_ISDIR(at.st_mode) else at.st_mtime_ns
        found[name] = (at.st_mode, at.st_uid, at.st_gid, when, content)
    return found
