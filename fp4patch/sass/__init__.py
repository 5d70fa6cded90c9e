"""Execute machine code on a CPU: from what nvdisasm writes of a kernel to C that computes what the GPU computes.

``listing`` reads every operand, ``flow`` finds the blocks, ``semantics`` defines each instruction, ``translate`` writes
the C. An instruction without an entry is refused by name.
"""
