"""Fills a template: everything escaped, and nothing missing goes unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(name: str, folder: Path, **values: Any) -> str:
    """Render the template of that name with these values, by default one from the directory of the reports."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)
