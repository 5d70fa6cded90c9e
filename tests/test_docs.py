"""The pages: links lead somewhere, commands exist with the options named, and ``sh`` blocks run unchanged."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from few_probes import few_probes
from pydantic import TypeAdapter

from fp4patch import cli
from fp4patch.edits import Retired
from tools import regenerate

ROOT = Path(__file__).parents[1]
TEXTS = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
PAGES = sorted([*TEXTS, *(ROOT / "docs").glob("*.md"), *(ROOT / "encoders").glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def anchors(page: Path) -> set[str]:
    """Return GitHub's anchors of the headings: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> Iterator[list[str]]:
    """Every ``fp4patch ...`` of the code blocks and of the code within sentences, split as a shell does."""
    joined = text.replace("\\\n", " ")
    fenced = [line for _, block in FENCE.findall(joined) for line in block.splitlines()]
    lines = fenced + re.findall(r"^ {4}(.*)$", joined, re.MULTILINE)
    blocks = [line for line in lines if re.match(r"(\$ )?(\w+=\S+ )*fp4patch ", line)]
    for line in [*blocks, *re.findall(r"`(fp4patch [^`]*)`", joined)]:
        for part in re.split(r" (?:&&|\|) ", line):
            words = shlex.split(part, comments=True)
            if "fp4patch" in words:
                yield words[words.index("fp4patch") + 1 :]


@pages
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in index] == ["README.md"]


@pages
def test_programs_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    scripts = re.findall(r"python3? ((?:docs|tools|tests)/\S+\.py)", text)
    modules = re.findall(r"python3? -m (tools\.\w+)", text)
    tests = re.findall(r"pytest[^`\n|]*?(tests/[\w/.]+)", text)
    files = [*scripts, *(f"{module.replace('.', '/')}.py" for module in modules), *tests]
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert set(re.findall(r"tools\.regenerate ([a-z][\w-]+)", text)) <= regenerate.names().keys()


@pages
def test_commands_have_the_options_that_the_pages_give_them(page: Path) -> None:
    for name, *words in commands(page.read_text()):
        if name.startswith("-"):
            continue
        command = cli.fp4patch.get_command(click.Context(cli.fp4patch), name)
        assert command, f"fp4patch {name}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        own = words[: words.index("--")] if "--" in words else words  # behind it are the options of docker buildx
        used = {word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)}
        assert used - {"--help"} <= known, f"fp4patch {name} {shlex.join(words)}"


def test_the_sign_that_extending_shows_is_one_that_a_patch_may_hold() -> None:
    page = (ROOT / "docs/extending.md").read_text()
    shown = re.search(r"^( +)\[\[edits\.retired\]\]\n(?:\1.*\n)+", page, re.MULTILINE)
    assert shown
    (sign,) = tomllib.loads(textwrap.dedent(shown[0]))["edits"]["retired"]
    assert TypeAdapter(Retired).validate_python(sign)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart.md", "extending.md"])
def test_what_a_page_tells_to_type_works(name: str, tmp_path: Path) -> None:
    """Files that a block begins with the name of are written; ``sh`` blocks run, one after the other.

    Verify runs with one probe of CUTLASS, beside those of the page.
    """
    few_probes(tmp_path, {"encode-float-x8": "cutlass"})
    environment = os.environ | {
        "FP4PATCH_DATA": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ran = 0
    for language, text in FENCE.findall((ROOT / "docs" / name).read_text()):
        if language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", text]
            run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
            ran += 1
        elif wanted := re.match(r"(?:#|//) ([\w./-]+/[\w./-]+)\n", text):
            path = tmp_path / wanted[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    assert ran
