"""Nouns that all parts share: architectures, states, verdicts, problems; errors, processes, caches.

A *variant* is data. A *tree* is a fold of the variant's edits over the pristine source. A patch counts as applied only
after the compiled machine code has been verified.
"""
