"""Verify next3 on CUTLASS, and write what its commands print to docs/proof.md.

    python -m tools.regenerate checks TREE      # a pristine CUTLASS 4.2.1

Works on a copy, and takes minutes of all processors.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.pages import _made_part as made_part

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
VERIFY = ("verify", "--variant", "next3")
OPTIONS: tuple[tuple[str, ...], ...] = ((), ("--arch", "100a,103a,75"))
HEAD = "| command | verdict | checks | executions | changed lines | of these judged |\n|---|---|---|---|---|---|"


def row(document: dict[str, Any], options: tuple[str, ...]) -> str:
    """Return a command's row, from its JSON document."""
    lines, spans = document["coverage"]["lines"], document["coverage"]["unjudged"]
    judged = lines - sum(span["last"] - span["first"] + 1 for span in spans)
    numbers = (
        sum(len(result["checks"]) for result in document["results"]),
        len(document["executed"]["executions"]),
        lines,
        judged,
    )
    command = " ".join(("fp4patch", *VERIFY, *options, "TREE"))
    return f"| `{command}` | {document['verdict']} | {' | '.join(f'{number:,}' for number in numbers)} |"


def measured(tree: Path, options: tuple[str, ...]) -> tuple[str, str]:
    """Return the row of a command on a patched tree, and the release with the compiler's."""
    command = [sys.executable, "-m", "fp4patch", *VERIFY, *options, "--json", "-", str(tree)]
    document = json.loads(subprocess.run(command, check=False, capture_output=True, text=True).stdout)
    return row(document, options), f"CUTLASS {document['version']}, nvcc {document['toolchain']['nvcc']}."


def main(arguments: list[str]) -> None:
    """Verify, and write the rows between the page's marks."""
    (tree,) = arguments
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "cutlass"
        shutil.copytree(tree, copy)
        apply = [sys.executable, "-m", "fp4patch", "apply", "--variant", "next3", str(copy)]
        subprocess.run(apply, check=True, capture_output=True)
        rows, of = zip(*(measured(copy, options) for options in OPTIONS), strict=True)
    made_part.write(PAGE, "checks", "\n".join([of[0], "", HEAD, *rows, ""]))
