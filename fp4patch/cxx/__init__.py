"""C++ and CUDA as text: one reader for all that fp4patch asks of it.

``text`` finds what is no code, ``tokens`` are made of a span when somebody asks, ``condition`` and ``preprocessor``
evaluate what ``#if`` asks, and ``edit`` replaces parts and proves the result.
"""
