"""The files that the Dockerfile writes by here-documents."""

from __future__ import annotations

import re
from pathlib import Path

DOCKERFILE = Path(__file__).parents[2] / "dockerfiles" / "Dockerfile"


def written(path: str) -> str:
    """Return the text that the Dockerfile writes to this path by a here-document."""
    found = re.search(
        rf"^COPY (?:--\S+ )?<<'EOF' {re.escape(path)}\n(.*?)^EOF$", DOCKERFILE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found
    return found[1]
