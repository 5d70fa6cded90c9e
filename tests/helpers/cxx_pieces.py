"""Pieces of C++ of which tests make texts, weird ones included."""

from hypothesis import strategies as st

WHOLE = [
    "a",
    "_b1",
    "0x1'000",
    "1e+5",
    ".5f",
    '"s\\"t"',
    "u8'c'",
    'R"(x)y)"',
    'LR"d(\n\\\n)" )d"',
    "/* c */",
    "::",
    ">>",
]
BETWEEN = ["\\\n", "\\\r\n", "\n", "\r\n", " ", "\t", "\f", "#", "##", "//", "#if", "#endif"]
STRAY = ["'", '"', "\\", "é", "\u2028", "@", "\ufeff", "$"]
PIECES = st.sampled_from([*WHOLE, *BETWEEN, *STRAY])
