"""The release of a checkout."""

from fp4patch.catalog.identify import Identified
from fp4patch.sources import git


def checked_out(tree: Identified) -> str | None:
    """Return the release whose pinned commit is checked out, or None. The version that a tree states can be wrong:
    CUTLASS v4.1.0 states 4.0.0."""
    head = git.head(tree.root)
    return next((version for version, commit in tree.target.commits.items() if commit == head), None)
