"""The code blocks of docs/integrations.md, so that the tests run exactly the documented commands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"


def block(language: str, containing: str) -> str:
    """Return the one fenced block of that language with these words in it."""
    blocks: list[str] = re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    found = [text for text in blocks if containing in text]
    assert len(found) == 1, f"{len(found)} blocks of {language} in {PAGE.name} have {containing!r}"
    return found[0]
