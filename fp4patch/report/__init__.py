"""Every result and every error, as text, as JSON or as a page; nothing here decides anything."""
