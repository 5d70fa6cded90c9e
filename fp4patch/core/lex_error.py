"""Text that cannot be read in its language, and a change of it that does not read as it was meant."""


class LexError(ValueError):
    """The language has no form for this text, or the text ends inside one: a comment, a string, an ``#if``."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line


class NotAsMeant(ValueError):  # noqa: N818 - not an error of the program: what became of a change
    """A text with its changes reads otherwise than the old text with the changes in it."""


class Overlap(NotAsMeant):
    """Two changes are about the same part of a text."""
