"""Draw the pictures of README and proof page: the table of `verify` as SVG, the report as PNG.

    python -m tools.regenerate pictures WORK_FOLDER

Needs what `make demo` needs, and chromium on PATH for the page.
"""

import io
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from fp4patch.commands import verify_page as html
from fp4patch.commands import verify_text as report
from fp4patch.proof.verify import VerifyRequest, verify_trees

HERE = Path(__file__).parents[2] / "docs" / "images"
RELEASE = "4.2.1"
VARIANT = "next3"
ARCHS = "sm_120a,sm_121"


def main(arguments: list[str]) -> None:
    """Fetch, apply, verify; then draw."""
    (work,) = (Path(argument).resolve() for argument in arguments)
    tree = work / "cutlass"
    if not tree.exists():
        subprocess.run([sys.executable, "-m", "fp4patch", "fetch", f"cutlass=={RELEASE}", tree], check=True)
    subprocess.run([sys.executable, "-m", "fp4patch", "apply", "--variant", VARIANT, tree], check=True)
    options = VerifyRequest(variant=VARIANT, archs=ARCHS, execute=True)
    reports = verify_trees([tree], options, on_progress=lambda _: None)
    reports = tuple(replace(report, tree="./cutlass") for report in reports)

    console = Console(record=True, width=108, file=io.StringIO())
    console.print(report.VerifyText(reports[0]))
    console.save_svg(str(HERE / "verify.svg"), title=f"fp4patch verify --arch {ARCHS} ./cutlass")

    page = work / "report.html"
    page.write_text(html.page(reports), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += ["--disable-background-networking", f"--user-data-dir={profile}", "--window-size=1180,1400"]
        subprocess.run(
            [*command, f"--screenshot={HERE / 'report.png'}", page.as_uri()], check=True, capture_output=True
        )
