"""Write the rows of releases that git alone has into records/matrix.json, from checkouts.

``python -m tools.regenerate matrix [--verify NAMES] TREE…`` takes pristine checkouts of the commits that the catalog
pins, with the submodules that it contains, and does with them what ``tools.watch`` does with what it fetches.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fp4patch.catalog.identify import identify
from fp4patch.catalog.manifest import load
from fp4patch.commands.explore_page import MATRIX
from fp4patch.proof.verify import VerifyRequest
from tools import watch
from tools.checkouts import checked_out


def main(arguments: Sequence[str]) -> None:
    """Try every patch on the trees, verify them, and write the record; exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.regenerate matrix")
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    parser.add_argument("--verify", type=watch.variants, metavar="NAMES", default=["native"])
    parser.add_argument("--all", action="store_true", help="verify with the slow probes too")
    options = parser.parse_args(arguments)
    catalog = load()
    matrix = watch.Matrix.read(catalog.root / MATRIX)
    wrong = []
    for tree in options.trees:
        known = identify(tree, catalog)
        version = checked_out(known)
        if version is None:
            sys.exit(f"{tree} is no checkout of a commit that the catalog pins for {known.target.name}")
        release = watch.Release(known.target, version, None)
        source = f"{known.target.git} {known.target.tag_of(version)}"
        verify = [VerifyRequest(variant=name, every_probe=options.all) for name in options.verify]
        tried = watch.examine(tree, release, source, catalog, verify, matrix.rows)
        watch.record(tried, matrix)
        wrong += [f"{watch.name_of(tried)}: {what}: {why}" for what, why in tried.wrong]
    matrix.write(catalog.root)
    sys.exit("\n".join(wrong) or 0)
