"""``fp4patch features``: FP4 instructions that each compiler supports."""
