"""Where pristine trees come from: pinned, hash-checked package-index archives, or git."""
