"""Architectures on the command line."""

from __future__ import annotations

from fp4patch.core.arch import Arch
from fp4patch.core.errors import UsageError


def requested(text: str, help: str, *, ptx: bool = False) -> tuple[Arch, ...]:  # noqa: A002 - as UsageError's
    """Parse the architectures that an option names; UsageError, with ``help``, for anything else."""
    try:
        return Arch.parse_list(text, ptx=ptx)
    except ValueError as error:
        raise UsageError(str(error), help=help) from None
