"""Fills a template: everything is escaped in HTML and SVG, and nothing missing goes unnoticed."""

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


def render(name: str, folder: Path, **values: Any) -> str:
    """Render the template of that name with these values. It can include the files beside this module."""
    environment = Environment(
        loader=FileSystemLoader([folder, Path(__file__).parent]),
        autoescape=name.endswith((".html.j2", ".svg.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)


@dataclass(frozen=True)
class OwnScript:
    """The one script of a page."""

    text: Markup
    digest: str
    """Its SHA-256 in base64: the page's policy allows this script alone."""


def own_script(file: Path) -> OwnScript:
    """Return a script of ours for an inline element, ``<script>`` and a line break before it."""
    text = file.read_text(encoding="utf-8")
    assert "</" not in text, "it would end the script element"
    digest = base64.b64encode(hashlib.sha256(f"\n{text}".encode()).digest()).decode()
    return OwnScript(Markup(text), digest)  # noqa: S704 - our own file


def packed(value: Any) -> str:
    """Return a value as JSON, compressed, in base64: what a page shows on demand repeats itself."""
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)).decode()
