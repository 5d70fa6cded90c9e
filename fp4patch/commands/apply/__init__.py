"""``fp4patch apply`` and ``fp4patch revert``: the fold of a variant's edits, and the way back."""
