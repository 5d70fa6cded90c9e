"""``fp4patch list`` and ``fp4patch show``: variants, patches and targets."""
