"""Make the archives beside it again: trees as an older fp4patch left them, without the files that it did not touch.

python tests/tree/older/make_older.py TREE, with a pristine CUTLASS 4.2.1, in a checkout that has the commits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OLDER = {"0d46531": ("next3", "turbo"), "a3e54a2": ("next3",), "e5b47a4": ("next3",)}
"""Commits, and the variants that each applies: the first with next3, one before the
package got its layout, and one after."""


def main(pristine: Path) -> None:
    """Write an archive for each commit and variant."""
    sys.path.insert(0, str(ROOT / "tests/helpers"))
    from small_cutlass import small_cutlass

    for commit, variants in OLDER.items():
        for variant in variants:
            with tempfile.TemporaryDirectory() as folder:
                code, tree = Path(folder) / "code", small_cutlass(pristine, Path(folder) / "tree")
                code.mkdir()
                archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
                subprocess.run(["tar", "-x", "-C", code], input=archive, check=True)
                command = [sys.executable, "-m", "fp4patch", "apply", "--variant", variant, str(tree)]
                environ = os.environ | {"PYTHONPATH": str(code), "FP4PATCH_CACHE": folder}
                subprocess.run(command, cwd=code, env=environ, check=True)
                with tarfile.open(HERE / f"{commit}-{variant}.tar.xz", "w:xz") as packed:
                    for path in sorted(tree.rglob("*")):
                        name = path.relative_to(tree)
                        source = pristine / name
                        if path.is_file() and not (source.is_file() and source.read_bytes() == path.read_bytes()):
                            packed.add(path, str(name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
