"""What all tables of our TOML files have in common."""

from __future__ import annotations


class Manifest:
    """A part of a TOML file: its keys are the fields of the dataclass, and no others are taken."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - read by name, on the class, by whoever validates
