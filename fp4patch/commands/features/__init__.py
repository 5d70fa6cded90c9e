"""``fp4patch probe``: FP4 instructions that each compiler supports."""
