"""The command that adds an extra of fp4patch to the Python that runs it: pip then takes the installed release."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def install(name: str) -> str:
    """Return ``pip install 'fp4patch[name]'``, with the path of this Python unless its pip is the one on PATH.

    In an installation by pipx, the pip on PATH is that of another Python.
    """
    on_path, beside = shutil.which("pip"), Path(sys.executable).parent
    pip = "pip" if on_path and Path(on_path).parent == beside else f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} install 'fp4patch[{name}]'"
