"""Interpreters of builds: one file for each target whose build must be run to know what it compiles for.

An adapter runs the tree's own code as a build would, in a sandbox. SECURITY.md states what is executed.
"""

from collections.abc import Sequence
from pathlib import Path

from fp4patch.adapters import flashinfer, vllm
from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.target import Build


def evaluate(
    root: Path, build: Build, questions: Sequence[tuple[str, str]], *, parts: bool, traced: bool = False
) -> tuple[BuildRow, ...]:
    """Return the result of the tree's build for each CUDA release and arch list, in this order.

    A row has an ``error`` if the tree could not be evaluated. ToolchainError is raised if a program that the adapter
    needs is missing on this machine or does not run. Not ``parts``: a build at run time is not asked for its parts.
    ``traced``: the lines that ran are noted.
    """
    if build.kind == "cmake":
        return vllm.evaluate(root, build, questions, traced=traced)
    return flashinfer.evaluate(root, build, questions, parts=parts, traced=traced)
