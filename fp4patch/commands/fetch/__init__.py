"""``fp4patch fetch``: pristine trees."""
