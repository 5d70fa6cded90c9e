"""All 2^32 inputs through a conversion as the host's compiler builds it, compared with the specification."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from remembered import remembered

from fp4patch.catalog.rule import Promise
from fp4patch.proof.specification import interval_lines
from fp4patch.proof.sweep_result import NumericsReport, row_of

PROGRAM = Path(__file__).with_suffix(".cpp").read_text()


def host_sweep(
    header: str, call: str, *, promise: Promise = Promise.EXACT, flags: tuple[str, ...] = ()
) -> NumericsReport:
    """Return the result of ``call``, C++ of a float ``x`` that the text of a header makes callable."""
    files = {
        "sweep.cpp": PROGRAM,
        "subject.inc": f"{header}\nstatic inline unsigned int encode(float x) {{ return {call}; }}\n",
        "intervals.inc": interval_lines(),
    }
    command = ("g++", "-std=c++17", "-O3", "-march=native", "-fopenmp", *flags, "sweep.cpp", "-o", "sweep")

    def printed() -> str:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).write_text(text)
            subprocess.run(command, cwd=folder, check=True)
            return subprocess.run([f"{folder}/sweep"], capture_output=True, text=True, check=True).stdout

    rows = tuple(row_of(line) for line in remembered((*command, *files.values()), printed).splitlines())
    return NumericsReport(call, "g++", 1, rows, promise, 0.0)
