"""Every result and every error as text, as JSON or as a page. This part makes no decisions."""
