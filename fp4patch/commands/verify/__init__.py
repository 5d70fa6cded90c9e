"""``fp4patch verify``: the machine code of a patched tree, compared, judged and executed."""
