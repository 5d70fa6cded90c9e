"""NVFP4 and MXFP4 in NumPy: the reference that kernels are compared with, byte for byte.

Nothing here is fast, and nothing depends on a GPU. Formats: OCP Microscaling Formats (MX) 1.0, section 5; NVFP4 and the
layout of its scales: PTX ISA, ``mma`` with block scaling, and cuBLAS, "1D Block Scaling Factors Layout". Needs NumPy
alone.
"""

from fp4patch.reference.blocks import MXFP4_BLOCK, NVFP4_BLOCK, Quantized, dequantize, quantize_mxfp4, quantize_nvfp4
from fp4patch.reference.convert import fold_mxfp4, relative_error, requantize_mxfp4
from fp4patch.reference.formats import (
    E2M1_VALUES,
    e2m1_decode,
    e2m1_encode,
    e2m1_encode_stochastic,
    e4m3_decode,
    e4m3_encode,
    random_bytes,
    ue8m0_decode,
    ue8m0_encode,
)
from fp4patch.reference.layout import pack, scale_offset, swizzle_scales, unpack, unswizzle_scales
from fp4patch.reference.transformer_engine import hadamard_transform, quantize_as_transformer_engine

__all__ = [
    "E2M1_VALUES",
    "MXFP4_BLOCK",
    "NVFP4_BLOCK",
    "Quantized",
    "dequantize",
    "e2m1_decode",
    "e2m1_encode",
    "e2m1_encode_stochastic",
    "e4m3_decode",
    "e4m3_encode",
    "fold_mxfp4",
    "hadamard_transform",
    "pack",
    "quantize_as_transformer_engine",
    "quantize_mxfp4",
    "quantize_nvfp4",
    "random_bytes",
    "relative_error",
    "requantize_mxfp4",
    "scale_offset",
    "swizzle_scales",
    "ue8m0_decode",
    "ue8m0_encode",
    "unpack",
    "unswizzle_scales",
]
