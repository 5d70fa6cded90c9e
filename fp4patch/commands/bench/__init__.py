"""``fp4patch bench``: speed of encoders on a GPU."""
