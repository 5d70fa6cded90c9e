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
import page_commands
import pytest
from few_probes import copy_data, few_probes
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from fp4patch import cli
from fp4patch.edits import Retired
from tools import regenerate

ROOT = Path(__file__).parents[1]
TEXTS = [path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"]
PAGES = sorted([*TEXTS, *(ROOT / "docs").glob("*.md"), *(ROOT / "encoders").glob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

USERS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

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


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_command_of_a_page_runs_or_has_the_reason_why_not(page: Path) -> None:
    """Here, in the test that a comment of the page names, or once a week; helpers/page_commands.py has the comments."""
    text = page.read_text()
    scripts = [block.script for user in USERS for block in page_commands.blocks(user.read_text())]
    assert page_commands.untried(text, scripts) == []
    assert [file for file in page_commands.files(text) if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_command_of_a_page_prints_is_what_the_page_states(page: Path) -> None:
    assert page_commands.unstated(page.read_text()) == []


COMMENTED = """
<!-- weekly -->
```sh
make demo
```

It passes with 913 checks: `fp4patch verify --arch 75 TREE`.

<!-- sh
fp4patch apply x && fp4patch verify --arch 75 x
> 913 checks
-->
<!-- run by tests: `git clean -x` -->
`git clean -x` and `fp4patch verify` are words.

<!-- not run: it needs a GPU -->

    docker run \\
      IMAGE
"""


def test_commands_of_a_page_are_told_from_words_and_its_statements_from_others() -> None:
    weekly, hidden = page_commands.blocks(COMMENTED)
    assert (weekly.script, weekly.weekly, hidden.weekly, hidden.prints) == ("make demo\n", True, False, ("913 checks",))
    scripts = [weekly.script, hidden.script]
    assert page_commands.untried(COMMENTED, scripts) == []
    assert page_commands.unstated(COMMENTED) == []
    assert page_commands.unstated(COMMENTED.replace("with 913", "with 914")) == ["913 checks"]
    assert page_commands.files(COMMENTED) == ["tests"]
    assert page_commands.untried(COMMENTED, ["fp4patch verify --arch 750 x"]) == ["fp4patch verify --arch 75 TREE"]
    bare = re.sub(r"<!-- (not run|run by|weekly).* -->", "", COMMENTED)
    assert page_commands.untried(bare, scripts) == ["docker run IMAGE", "git clean -x"]


def test_a_comment_that_is_none_of_these_is_a_mistake() -> None:
    """Such as one whose reason is missing: it would be passed over."""
    known = re.compile(
        r"(weekly|sh( weekly)?|run by [^`]+|not run: .+|run by \S+: `.*|not run, .*: `.*|made by tools.*|end)$"
    )
    for page in USERS:
        for comment in re.findall(r"<!-- ?(.*?)(?: ?-->|$)", page.read_text(), re.MULTILINE):
            if re.match("weekly|sh|run|not", comment):
                assert known.match(comment), f"{page.name}: {comment}"


WEEKLY = os.environ.get("FP4PATCH_WEEKLY_PAGES") == "1"
RUNNING = [
    page for page in USERS if any(WEEKLY or not block.weekly for block in page_commands.blocks(page.read_text()))
]


def test_the_weekly_job_runs_the_pages_with_weekly_commands_one_by_one() -> None:
    jobs = YAML(typ="safe").load(ROOT / ".github/workflows/edges.yml")["jobs"]
    weekly = [page for page in USERS if any(block.weekly for block in page_commands.blocks(page.read_text()))]
    assert jobs["pages"]["strategy"]["matrix"]["page"] == [page.relative_to(ROOT).as_posix() for page in weekly]
    (run,) = (step["run"] for step in jobs["pages"]["steps"] if "pytest" in step.get("run", ""))
    assert f"{test_what_a_page_tells_to_type_works.__name__}[$PAGE]" in run
    assert jobs["pages"]["env"]["FP4PATCH_WEEKLY_PAGES"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_tells_to_type_works(page: Path, tmp_path: Path) -> None:
    """Files that a block begins with the name of are written; ``sh`` blocks run, one after the other.

    Verify runs with one probe of CUTLASS, beside those of the page. With FP4PATCH_WEEKLY_PAGES=1 it runs with all, and
    the weekly blocks run too.
    """
    text = page.read_text()
    environment = os.environ | {
        "CHECKOUT": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FP4PATCH_WEEKLY_PAGES": "",  # of a pytest that a block runs
    }
    if not WEEKLY:
        environment["FP4PATCH_DATA"] = str(few_probes(tmp_path, {"encode-float-x8": "cutlass"}))
    for _, written in FENCE.findall(text):
        if wanted := re.match(r"(?:#|//) ([\w./-]+/[\w./-]+)\n", written):
            if "FP4PATCH_DATA" not in environment:
                environment["FP4PATCH_DATA"] = str(copy_data(tmp_path))
            path = tmp_path / wanted[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written)
    for block in (block for block in page_commands.blocks(text) if WEEKLY or not block.weekly):
        command = ["bash", "-euo", "pipefail", "-c", block.script]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{block.script}\n{run.stdout}\n{run.stderr}"
        printed = " ".join(run.stdout.split())
        assert [line for line in block.prints if line not in printed] == [], f"{block.script}\n{run.stdout}"
