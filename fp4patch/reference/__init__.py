"""NVFP4 and MXFP4 in NumPy: the reference that kernels are compared with, byte for byte.

Nothing here is fast, and nothing depends on a GPU. Formats: OCP Microscaling Formats (MX) 1.0, section 5; NVFP4 and the
layout of its scales: PTX ISA, ``mma`` with block scaling, and cuBLAS, "1D Block Scaling Factors Layout". Needs NumPy
alone.
"""
