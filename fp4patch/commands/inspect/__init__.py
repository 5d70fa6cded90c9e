"""``fp4patch inspect``: the claims of an image, checked."""
