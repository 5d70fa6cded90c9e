"""Source trees: their fold, their receipts, and the transaction that writes all of them or none."""
