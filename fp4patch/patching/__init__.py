"""HOW a tree changes: edits of source text, receipts, and the transaction that writes. It knows of no compiler."""
