"""Text that cannot be read in its language: what is wrong, and in which line."""


class LexError(ValueError):
    """The language has no form for this text, or the text ends inside one: a comment, a string, an ``#if``."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.message = message
        self.line = line
