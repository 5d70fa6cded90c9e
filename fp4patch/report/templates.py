"""Fills the templates that lie beside the reports: everything escaped, and nothing missing goes unnoticed."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(name: str, **values: Any) -> str:
    """The template of that name with these values."""
    environment = Environment(
        loader=PackageLoader("fp4patch.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**values)
