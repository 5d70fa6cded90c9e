"""Source trees: their fold, their receipts, and what writes all of them or none."""
