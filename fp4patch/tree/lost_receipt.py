"""Files that fp4patch wrote and of which no receipt knows any more: what they are, and the way back."""

import shlex
from collections.abc import Mapping

from fp4patch.core.results import Problem, State
from fp4patch.tree.candidate_files import candidates
from fp4patch.tree.locked import LockedTree
from fp4patch.tree.stamp import Stamp, find_stamp


def without_receipt(tree: LockedTree) -> Mapping[str, Problem]:
    """Return why each file that is stamped, and not on record, cannot be taken as pristine."""
    stamps = {
        path: find_stamp(content)
        for path in candidates(tree).files
        if path not in tree.on_record and (content := tree.contents.get(path))
    }
    return {path: _problem(tree, path, stamp) for path, stamp in stamps.items() if stamp}


def _problem(tree: LockedTree, path: str, stamp: Stamp) -> Problem:
    known, edited = tree.known, "" if stamp.intact else "; edited since"
    release = f"`fp4patch fetch {known.target.name}=={known.version or 'VERSION'} DIR`"
    return Problem(
        expected="the bytes that upstream released, or a receipt of what fp4patch wrote",
        found=f"what fp4patch wrote for {stamp.variant} ({', '.join(stamp.patches)}{edited}), without its receipt",
        help=f"`git -C {shlex.quote(str(tree.root))} checkout -- {shlex.quote(path)}` gives the file back in a "
        f"checkout, unless the patched one was committed; else copy it from the release, which {release} gets; then "
        "run this again (`git clean -x` takes the .fp4patch directory away)",
        file=path,
        state=State.FOREIGN,
    )
