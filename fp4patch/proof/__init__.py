"""HOW it is proven: compile probes from two trees, read the machine code, compare it, judge it.

Nothing here knows of patches: it sees two views of a source tree, some probes, and the rules that their code must
satisfy. ``verify.verify`` is the way in.
"""
