"""Proof in the machine code: probes compiled from two trees, disassembled, compared, judged, executed.

Nothing here knows of patches: it sees two views of a source tree, some probes, and the rules that their code must
satisfy. ``verify.verify`` is the way in.
"""
