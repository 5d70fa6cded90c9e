"""Fills a template: everything is escaped in HTML and SVG, and nothing missing goes unnoticed."""

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_HERE = Path(__file__).parent


def render(name: str, folder: Path, **values: Any) -> str:
    """Render the template of that name with these values."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=name.endswith((".html.j2", ".svg.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)


def page(name: str, **values: Any) -> str:
    """Return the page of ``NAME.html.j2`` with these values, and ``NAME.js``: its policy allows this script alone."""
    script = (_HERE / f"{name}.js").read_text(encoding="utf-8")
    assert "</" not in script, "it would end the script element"
    digest = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
    own = {"text": Markup(script), "digest": digest}  # noqa: S704 - our own file
    return render(f"{name}.html.j2", _HERE, script=own, **values)


def packed(value: Any) -> str:
    """Return a value as JSON, compressed, in base64: what a page shows on demand repeats itself."""
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)).decode()
