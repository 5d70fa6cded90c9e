"""Sources of pristine trees: pinned, hash-checked package-index archives, or git."""
