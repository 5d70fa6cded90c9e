"""``fp4patch status``: the state of each patch and of each file."""
