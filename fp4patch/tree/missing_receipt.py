"""Files that fp4patch wrote and of which no receipt knows any more: what they are, and the way back.

To apply something to them would put one variant on top of another, and nothing could be reverted.
"""

import os
import shlex
from collections.abc import Mapping

from fp4patch.core.problem import Problem
from fp4patch.core.state import State
from fp4patch.tree.candidate_files import candidates
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import Stamp, find_stamp, may_be_stamped


def without_receipt(tree: LockedTree) -> Mapping[str, Stamp]:
    """Return the files that fp4patch wrote, if the tree has no receipt, whatever became of it."""
    if tree.receipt:
        return {}
    stamped = (path for path in candidates(tree).files if may_be_stamped(tree.contents.get(path) or b""))
    return {path: stamp for path in stamped if tree.may_change(tree.root, path) and (stamp := _stamp(tree, path))}


def missing_receipt(tree: LockedTree, path: str) -> Problem | None:
    """Return why a file cannot be taken as pristine: fp4patch wrote it, and no receipt knows it; None if it can."""
    stamp = None if path in tree.on_record else _stamp(tree, path)
    if stamp is None:
        return None
    edited = "" if stamp.intact else "; edited since"
    return Problem(
        expected="the bytes that upstream released, or a receipt of what fp4patch wrote",
        found=f"what fp4patch wrote for {stamp.variant} ({', '.join(stamp.patches)}{edited}), without its receipt",
        help=f"{_way_back(tree, path, stamp)}, then run this again (`git clean -x` takes the .fp4patch directory away)",
        file=path,
        state=State.FOREIGN,
    )


def _stamp(tree: LockedTree, path: str) -> Stamp | None:
    data = tree.current(path)
    return find_stamp(data) if data else None


def _way_back(tree: LockedTree, path: str, stamp: Stamp) -> str:
    """Return the command that gives the pristine file back: from our copy, from git, or from the release."""
    blob, file = tree.state_directory.blobs / stamp.pristine_sha256, shlex.quote(path)
    if blob.is_file():
        return f"`cp {shlex.quote(str(blob))} {shlex.quote(str(tree.root / path))}` gives the file back"
    known = tree.known
    release = (
        f"`fp4patch fetch {known.target.name}=={known.version or 'VERSION'} DIR` gives the release: copy DIR/{file} "
        "over the file"
    )
    if any(os.path.lexists(folder / ".git") for folder in (tree.root, *tree.root.parents)):
        checkout = f"`git -C {shlex.quote(str(tree.root))} checkout -- {file}`"
        return f"{checkout} gives the file back, unless the patched one was committed; else {release}"
    return release
