"""The nouns, as frozen values without I/O: a file for each topic. Every other module speaks in these.

A *variant* is data; a *tree* is a fold of its edits over the pristine source; nothing counts as applied until the
compiled machine code says so.
"""
