"""Preconditions of probes: what a tree must have, and headers of other projects that a probe takes in earnest."""

from collections.abc import Mapping, Sequence

from fp4patch.catalog.probe import Probe
from fp4patch.core.errors import Refused
from fp4patch.edits.cxx import lex, words
from fp4patch.edits.lex_error import LexError
from fp4patch.proof.view import SourceView
from fp4patch.tree.files import decode


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
