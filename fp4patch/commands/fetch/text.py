"""Results of ``fetch``, as text."""

from rich.console import RenderableType
from rich.text import Text

from fp4patch.sources.fetch import Fetched


def fetch_text(fetched: Fetched) -> RenderableType:
    """Return one sentence, then the command to run next."""
    proof = f", sha256 {fetched.sha256[:16]}… as pinned" if fetched.sha256 else ""
    note = f"\n  {fetched.holds}" if fetched.holds else ""
    return Text(f"{fetched.target} {fetched.version} in {fetched.directory} (from {fetched.source}{proof}){note}")
