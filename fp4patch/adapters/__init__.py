"""Interpreters of builds: one file for each target whose build must be run to know what it compiles for.

An adapter runs the tree's own code as a build would, in a sandbox. SECURITY.md states what is executed.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from fp4patch.adapters import flashinfer, vllm
from fp4patch.adapters.kept import KeptResults
from fp4patch.adapters.result import BuildRow
from fp4patch.catalog.target import Build


def evaluate(
    root: Path,
    build: Build,
    questions: Sequence[tuple[str, str]],
    *,
    parts: bool,
    traced: Collection[str] = (),
    kept: KeptResults | None = None,
) -> tuple[BuildRow, ...]:
    """Return the result of the tree's build for each CUDA release and arch list, in this order.

    A row has an ``error`` if the tree could not be evaluated. ToolchainError is raised if a program that the adapter
    needs is missing on this machine or does not run. Not ``parts``: a build at run time is not asked for its parts.
    ``traced``: files of the tree whose lines that ran are noted. ``kept`` are the results of
    this tree in the user's cache.
    """
    if build.kind == "cmake":
        return vllm.evaluate(root, build, questions, traced=traced, kept=kept)
    return flashinfer.evaluate(root, build, questions, parts=parts, traced=traced, kept=kept)
