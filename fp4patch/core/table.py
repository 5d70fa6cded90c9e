"""Base class of all tables of the project's TOML files."""

from typing import Any, ClassVar


class Manifest:
    """A table of a TOML file. Its keys are the fields of the dataclass, and unknown keys are rejected."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
