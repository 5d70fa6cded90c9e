"""The command ``fp4patch``, also as ``python -m fp4patch``; Ctrl-C ends it with status 130 even during the imports."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` without the enumerations, whose import takes its time
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Exit at once: nothing has begun yet, and an exception during an import would print a traceback."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def main() -> NoReturn:
    """Run the command line; see :func:`fp4patch.cli.main`."""
    heard = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # a background job ignores it
    if heard:
        _signal.signal(_signal.SIGINT, _leave)
    from fp4patch import cli  # noqa: PLC0415 - with the handler in place

    if heard:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
