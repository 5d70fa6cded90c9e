"""``fp4patch build``: the patched vLLM as an image."""
