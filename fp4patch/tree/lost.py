"""Files that fp4patch wrote and of which no receipt knows any more: what they are, and the way back.

To apply something to them would put one variant on top of another, and nothing could be reverted.
"""

import hashlib
import shlex

from fp4patch.catalog.identify import Identified
from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree.concerned import concerned
from fp4patch.tree.git_index import tracked
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import Stamp, find_stamp


def lost(tree: LockedTree) -> dict[str, Stamp]:
    """Return the files of a tree without a receipt that fp4patch wrote."""
    return tree.unrecorded(concerned(tree).files)


def lost_file(tree: LockedTree, path: str) -> Problem | None:
    """Return why a file cannot be taken as pristine: fp4patch wrote it, and no receipt knows it; None if it can."""
    data = tree.current(path)
    stamp = find_stamp(data) if data and path not in tree.on_record else None
    if stamp is None or data is None:
        return None
    return Problem(
        expected="the bytes that upstream released, or a receipt of what fp4patch wrote",
        found=f"what fp4patch wrote for {said(stamp)}, without its receipt",
        help=f"{_way_back(tree.known, path, data)}, then run this again (`git clean -x` takes the .fp4patch directory "
        "away)",
        file=path,
        state=State.FOREIGN,
    )


def said(stamp: Stamp) -> str:
    """Return a stamp in words: ``turbo (cutlass/e2m1-guard 1)``."""
    return f"{stamp.variant} ({', '.join(stamp.patches)}{'' if stamp.intact else '; edited since'})"


def _way_back(tree: Identified, path: str, data: bytes) -> str:
    """Return the command that gives the pristine file back: git's, unless what git has is the patched file."""
    blob = b"blob %d\0" % len(data) + data
    ours = {hashlib.sha1(blob, usedforsecurity=False).hexdigest(), hashlib.sha256(blob).hexdigest()}
    if tracked(tree.root).get(path, next(iter(ours))) not in ours:
        return f"`git -C {shlex.quote(str(tree.root))} checkout -- {shlex.quote(path)}` gives the file back"
    release = f"{tree.target.name}=={tree.version or 'VERSION'}"
    return f"`fp4patch fetch {release} DIR` gives the release: copy DIR/{shlex.quote(path)} over the file"
