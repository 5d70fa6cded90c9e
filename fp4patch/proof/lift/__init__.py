"""Execute machine code on a CPU: from the disassembler's JSON of a kernel to C that computes what the GPU computes.

``listing`` reads every operand, ``flow`` finds the blocks, ``semantics`` says what each instruction does, ``translate``
writes the C. What is not in the table is refused by name.
"""
