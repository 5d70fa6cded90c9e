"""A command for which permissions count, also where root runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def without_privileges(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fp4patch", *map(str, arguments)]
    if os.geteuid() == 0:  # util-linux's; root keeps its files, and no power over permissions
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False)
