"""The error of this package."""


class SassError(Exception):
    """Machine code that is not understood, cannot be executed, or leaves its memory; ``help`` is the remedy."""

    def __init__(self, message: str, *, help: str = "") -> None:  # noqa: A002 - the reader's word
        super().__init__(message)
        self.message = message
        self.help = help
