"""Results of ``fetch``, as text and as a JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from fp4patch.sources.fetched import Fetched


def fetch_document(fetched: Fetched) -> dict[str, Any]:
    """Return the directory and the source of the tree."""
    return {"schema": SCHEMA} | {key: str(value) for key, value in asdict(fetched).items()}


def fetch_text(fetched: Fetched) -> RenderableType:
    """Return one sentence, then the command to run next."""
    proof = f", sha256 {fetched.sha256[:16]}… as pinned" if fetched.sha256 else ""
    note = f"\n  {fetched.holds}" if fetched.holds else ""
    return Text(f"{fetched.target} {fetched.version} in {fetched.directory} (from {fetched.source}{proof}){note}")
