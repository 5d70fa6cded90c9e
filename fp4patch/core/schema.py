"""The version of every JSON document that fp4patch writes."""

from __future__ import annotations

SCHEMA = 1
"""Version of every JSON document that fp4patch writes."""
