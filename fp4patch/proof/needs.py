"""Preconditions of probes: what a tree must have, and headers of other projects that a probe takes in earnest.

Of those there is only PyTorch so far. Its headers are looked for and not imported: importing PyTorch takes seconds.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from fp4patch.catalog.probe import Probe
from fp4patch.core.errors import Refused, UsageError
from fp4patch.edits.cxx import lex, words
from fp4patch.edits.lex_error import LexError
from fp4patch.proof.view import SourceView
from fp4patch.tree.files import decode

_OF_TORCH = "c10/util/Half.h"
"""A header that every release of PyTorch has had in its include directory."""


def nothing_to_show(probe: Probe, tree: SourceView, headers: Mapping[str, object], *, every_probe: bool = False) -> str:
    """Return the reason why a probe does not run on this tree; empty if it runs.

    ``headers`` are the available third-party headers.
    """
    if needs := probe.needs:
        files = " or ".join(needs.search)
        if needs.without and _has(tree, needs.search, needs.without):
            return f"this release has `{needs.without}` in {files}: the patch has nothing to do"
        if not _has(tree, needs.search, needs.tokens):
            return f"this release has no {f'`{needs.tokens}` in ' if needs.tokens else ''}{files}"
    missing = [name for name in probe.uses if name not in headers]
    if missing:
        return f"it takes the real headers of {', '.join(missing)}: name them with --torch-include"
    if probe.slow and not every_probe:
        return "it takes the compiler minutes: --all runs it"
    return ""


def _has(tree: SourceView, search: Sequence[str], text: str) -> bool:
    """Return whether one of the files has the tokens. One that cannot be read as C++ counts: the compiler decides."""
    tokens = words(text)
    for path in (path for pattern in search for path in tree.root.glob(pattern) if path.is_file()):
        name = path.relative_to(tree.root).as_posix()
        content = tree.overlay[name] if name in tree.overlay else path.read_bytes()
        try:
            if content is not None and (not tokens or lex(decode(content, name)).find(tokens)):
                return True
        except (LexError, Refused):
            return True
    return False


def find_headers(torch_include: Path | None) -> dict[str, tuple[Path, ...]]:
    """Return the include directories at hand, by the names that a probe's ``uses`` has.

    ``torch_include`` is PyTorch's include directory; None: that of an installed PyTorch, if there is one. UsageError if
    it holds no such headers.
    """
    folder = torch_include.resolve() if torch_include else _installed_torch()
    if folder is None:
        return {}
    if not (folder / _OF_TORCH).is_file():
        raise UsageError(
            f"{folder} does not hold PyTorch's headers",
            help="name the directory that holds c10 and torch, for example site-packages/torch/include",
        )
    return {"torch": (folder, folder / "torch/csrc/api/include")}


def _installed_torch() -> Path | None:
    """Return the include directory of the PyTorch that this Python would import."""
    spec = importlib.util.find_spec("torch")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place) / "include").joinpath(_OF_TORCH).is_file():
            return folder
    return None
