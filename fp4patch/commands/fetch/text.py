"""Results of ``fetch``, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

if TYPE_CHECKING:
    from fp4patch.sources.fetched import Fetched


def fetch_text(fetched: Fetched) -> RenderableType:
    """Return one sentence, then the command to run next."""
    proof = f", sha256 {fetched.sha256[:16]}… as pinned" if fetched.sha256 else ""
    note = f"\n  {fetched.holds}" if fetched.holds else ""
    return Text(f"{fetched.target} {fetched.version} in {fetched.directory} (from {fetched.source}{proof}){note}")
