"""``fp4patch export``: patches as changes for upstream."""
