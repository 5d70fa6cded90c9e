"""The root of all errors and its subclasses, each with its exit status and the problems that it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.core.results import Problem

# Exit statuses beside 0, done.
EXIT_REFUSED = 1
"""Refused or failed."""
EXIT_USAGE = 2
"""A wrong command line."""
EXIT_BUG = 3
"""A bug of ours."""
EXIT_INTERRUPTED = 130
"""Interrupted: 128 and the number of SIGINT, as a shell counts it."""


class Fp4PatchError(Exception):
    """An error that the user can act on: one sentence about the event and, in ``help``, the recommended action."""

    exit_code: int = EXIT_REFUSED

    def __init__(self, message: str, *, help: str = "", problems: Sequence[Problem] = ()) -> None:  # noqa: A002 - the reader's word
        super().__init__(message)
        self.message = message
        self.help = help
        self.problems = tuple(problems)


class UsageError(Fp4PatchError):
    """The command line names something that does not exist: exit status 2."""

    exit_code = EXIT_USAGE


class Refused(Fp4PatchError):  # noqa: N818 - the word that the tree's state and the documents use
    """A tree cannot be brought to the requested state and was left unchanged. It carries every problem found."""


class ManifestError(Fp4PatchError):
    """Patches, variants or targets on disk are not valid. It carries every problem, each with file and key."""


class SourceError(Fp4PatchError):
    """A pristine tree cannot be fetched: unknown version, no network, or a hash that does not match its pin."""


class ToolchainError(Fp4PatchError):
    """No usable compiler or disassembler, or parts of one that do not belong together."""


class ProofError(Fp4PatchError):
    """A probe could not be compiled, disassembled or parsed; nothing is known about the machine code."""


class ImageError(Fp4PatchError):
    """An image cannot be built or read: no engine, no builder, too little room, or an image without a proof."""


class BinaryError(Fp4PatchError):
    """A file is damaged, or has no contents that could be inspected."""


class NothingCompiledError(BinaryError):
    """A file or directory that exists and holds no compiled code."""
