"""The variant to recommend for a tree and a CUDA toolkit: the first of the target's advice that fits both."""

from packaging.version import Version

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.target import Advice
from fp4patch.core.errors import ToolchainError
from fp4patch.core.release import covers
from fp4patch.proof.toolchain import find_toolchain


def recommend(tree: Identified, cuda: Version | None) -> Advice | None:
    """Return ``cuda`` None: the toolkit is not known, and only advice for all of them counts. None if nothing fits."""
    for advice in tree.target.advice:
        if covers(advice.versions, tree.version) and covers(advice.cuda, cuda):
            return advice
    return None


def toolkit() -> Version | None:
    """Return the CUDA release (13.0) of the compiler that verify would use; None if there is none."""
    try:
        return Version(".".join(find_toolchain().info.nvcc.split(".")[:2]))
    except ToolchainError:
        return None
