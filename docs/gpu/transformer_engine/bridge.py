"""TransformerEngine's NVFP4 kernels, of the library that run.sh builds, on PyTorch's tensors."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import torch

TUNED, TUNED_BF16_SCALES, SQUARES, ANY, ANY_SQUARES = range(5)
DTYPES = {torch.float32: 4, torch.float16: 5, torch.bfloat16: 6}
SIGNS = sum(1 << at for at in (3, 5, 6, 7, 8, 9, 10, 12, 14, 15))
"""The recipe's random signs as ``get_sign_from_vector`` packs them."""


def loaded(path: Path) -> ctypes.CDLL:
    """Return the library; its run-time library is PyTorch's own, found by name."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line and ".so" in line:
            ctypes.CDLL(line.split()[-1], mode=ctypes.RTLD_GLOBAL)
            break
    else:
        ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(os.fspath(path))
    library.te_error.restype = ctypes.c_char_p
    return library


@dataclass(frozen=True)
class Output:
    """Results of one call of a kernel: payload and scales of the matrix, of its transpose, or of both."""

    data: torch.Tensor | None
    scales: torch.Tensor | None
    data_t: torch.Tensor | None
    scales_t: torch.Tensor | None


def padded(count: int, to: int) -> int:
    """Return the next multiple of ``to``."""
    return -(-count // to) * to


def outputs(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return room for a payload and its scales, whose rows TransformerEngine pads to four; filled with a mark."""
    data = torch.full((rows, columns // 2), 0xA5, dtype=torch.uint8, device="cuda")
    scales = torch.full((padded(rows, 128), padded(columns // 16, 4)), 0xA5, dtype=torch.uint8, device="cuda")
    return data, scales


def quantize(
    library: ctypes.CDLL,
    kernel: int,
    x: torch.Tensor,
    amax: torch.Tensor,
    *,
    rows: bool = True,
    columns: bool = True,
    state: torch.Tensor | None = None,
    room: Output | None = None,
) -> Output:
    """Quantize a matrix; with ``state``, seed and offset as two int64, by stochastic rounding."""
    height, width = x.shape
    if room is None:
        room = Output(
            *(outputs(height, width) if rows else (None, None)), *(outputs(width, height) if columns else (None, None))
        )

    def at(tensor: torch.Tensor | None) -> ctypes.c_void_p:
        return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())

    def stride(tensor: torch.Tensor | None) -> ctypes.c_size_t:
        return ctypes.c_size_t(0 if tensor is None else tensor.shape[1])

    failed = library.te_quantize(
        kernel,
        DTYPES[x.dtype],
        at(x),
        ctypes.c_size_t(height),
        ctypes.c_size_t(width),
        at(amax),
        at(room.data),
        at(room.scales),
        at(room.data_t),
        at(room.scales_t),
        stride(room.scales),
        stride(room.scales_t),
        int(state is not None),
        at(state),
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
    )
    if failed:
        raise RuntimeError(library.te_error().decode())
    return room


def hadamard(library: ctypes.CDLL, x: torch.Tensor) -> torch.Tensor:
    """Return the random Hadamard transform of the transposed matrix, in bfloat16."""
    height, width = x.shape
    out = torch.empty((width, height), dtype=torch.bfloat16, device="cuda")
    failed = library.te_hadamard(
        ctypes.c_void_p(x.data_ptr()),
        ctypes.c_size_t(height),
        ctypes.c_size_t(width),
        SIGNS,
        ctypes.c_void_p(out.data_ptr()),
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
    )
    if failed:
        raise RuntimeError(library.te_error().decode())
    return out


def random_state(seed: int, offset: int) -> torch.Tensor:
    """Return what the kernels take as the state of the random numbers."""
    return torch.tensor([seed, offset], dtype=torch.int64, device="cuda")
