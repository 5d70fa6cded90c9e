"""The process in which the program of a condition runs several texts: ``python -I -B condition_run.py SHIM CAPABILITIES
TEXTS``, where the capabilities are one word with commas.

It prints a JSON list with what the program prints of each text, and null where the program does not run to its end.
"""

import contextlib
import io
import json
import runpy
import signal
import sys
from types import FrameType
from typing import NoReturn

LIMIT = 2
"""Seconds for a text; it takes a thousandth of one."""


def stop(_: int, __: FrameType | None) -> NoReturn:
    """End a text that takes longer than LIMIT."""
    raise TimeoutError


def said(shim: str, capabilities: list[str], text: str) -> str | None:
    """Return what the program prints of a text."""
    sys.argv = [shim, text, *capabilities]
    out = io.StringIO()
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_path(shim, run_name="__main__")
    except BaseException:  # whatever ends it: it gives no answer
        return None
    finally:
        signal.alarm(0)
    return out.getvalue()


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, stop)
    _, program, asked, *texts = sys.argv
    answers = [said(program, asked.split(","), one) for one in texts]
    sys.stdout.write(json.dumps(answers))
