"""The version of every JSON document that fp4patch writes."""

from __future__ import annotations

from typing import Final

SCHEMA: Final = 1
"""Version of every JSON document that fp4patch writes."""
