"""The number by which a reader of a JSON document knows its form."""

from typing import Final

SCHEMA: Final = 1
"""Version of every JSON document that fp4patch writes."""
