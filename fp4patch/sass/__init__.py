"""Execute the machine code of CUDA kernels on a CPU: ``README.md`` beside this file has an example, and the limits.

``text`` and ``listing`` read what nvdisasm writes, ``flow`` finds the blocks, ``semantics`` and ``warps`` define each
instruction, ``translate`` writes C that computes what the GPU computes, and ``grid`` runs it. An instruction without an
entry is refused by name.
"""

from fp4patch.sass.cubin import Cubin, read_cubin
from fp4patch.sass.error import SassError
from fp4patch.sass.grid import Array, Launch
from fp4patch.sass.recording import HostProgram, link
from fp4patch.sass.tensor_map import TensorMap

__all__ = ["Array", "Cubin", "HostProgram", "Launch", "SassError", "TensorMap", "link", "read_cubin"]
