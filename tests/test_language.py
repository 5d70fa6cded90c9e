"""Rules of the project's English that a program can check: openings of docstrings, and words with a better one.

Texts are docstrings, comments, pages, help texts, and the literals of which messages are made.
"""

from __future__ import annotations

import ast
import inspect
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import click
import pytest

from fp4patch.commands.main import cli

ROOT = Path(__file__).parents[1]
OPENINGS = ("What", "Whether", "Where", "Of", "How", "Why", "When", "Which", "Whose")
PARTS = sorted(path for path in (ROOT / "fp4patch").iterdir() if (path / "__init__.py").is_file())
PLACES = [*PARTS, ROOT / "tests", ROOT / "tools", ROOT / "docs"]

PAGES = sorted(
    page for pattern in ("*.md", "docs/*.md", "encoders/*.md", "integrations/**/*.md") for page in ROOT.glob(pattern)
)

BETTER = {
    r"folders?": "directory",
    r"nobody|somebody|whoever": "the user, or the passive",
    r"twins?": "software fallback",
    r"borders?": "boundary, threshold",
    r"units?|pieces?": "cubin, fatbin, ELF section",
    r"lies?|stands?": "is located, is wrong",
    r"speaks? of": "applies to, names",
    r"say|says|saying|said|told": "reports, prints, returns, message",
    r"asked for|served|seen|lacks?": "requested, supported, detected, unsupported",
    r"telling": "fingerprint",
}
IN_MESSAGES = BETTER | {r"knows?|wants?|tells?": "supports, recognizes, states"}
RIGHT = r"translation units?|systemd units?|units? in the last place|stands? (alone|for)|stand-ins?|that is to say"
"""Phrases in which such a word is the right one."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a file, with those of attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        attributes = () if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else pairwise(node.body)
        found = [after for before, after in attributes if isinstance(before, ast.Assign | ast.AnnAssign)]
        for statement in [*node.body[:1], *found]:
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    yield statement.lineno, inspect.cleandoc(text)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each line of comment in a file."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal in a module that has two words or values beside each other, docstrings left
    out.

    A value in an f-string is an ellipsis.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if id(node) not in left_out and re.search("(…|[a-z]) (…|[a-z]{2})", text):
            yield node.lineno, text


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a TOML document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_of(inner)


def wrong_words(text: str, words: Mapping[str, str] = BETTER) -> list[str]:
    """Return the words of a text that have a better one; code in backticks and code blocks do not count."""
    text = re.sub(r"^```.*?^```$|``.*?``|`[^`]*`|^ {4}[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(rf"\b({RIGHT})\b", "", " ".join(text.split()), flags=re.IGNORECASE)
    return [
        f"{word[0]} ({better})"
        for pattern, better in words.items()
        for word in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE)
    ]


def of_place(place: Path, read: Callable[[Path], Iterator[tuple[int, str]]] = docstrings) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each docstring, or comment, below a directory."""
    for path in sorted(place.rglob("*.py")):
        for line, text in read(path):
            yield f"{path.relative_to(ROOT)}:{line}", text


@pytest.mark.parametrize("place", PLACES, ids=lambda path: path.name)
def test_the_first_sentence_of_a_docstring_stands_alone(place: Path) -> None:
    assert [f"{where}: {text.split()[0]}" for where, text in of_place(place) if text.split()[0] in OPENINGS] == []


@pytest.mark.parametrize("place", PLACES, ids=lambda path: path.name)
def test_docstrings_and_comments_have_the_words_of_the_field(place: Path) -> None:
    texts = [*of_place(place), *of_place(place, comments)]
    assert [(where, words) for where, text in texts if (words := wrong_words(text))] == []


@pytest.mark.parametrize("part", PARTS, ids=lambda path: path.name)
def test_messages_have_the_words_of_the_field(part: Path) -> None:
    texts = list(of_place(part, messages))
    for table in part.rglob("*.toml"):
        texts += [(table.name, text) for text in texts_of(tomllib.loads(table.read_text(encoding="utf-8")))]
    assert [(where, words) for where, text in texts if (words := wrong_words(text, IN_MESSAGES))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_have_the_words_of_the_field(page: Path) -> None:
    assert wrong_words(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["", *cli.commands])
def test_help_texts_have_the_words_of_the_field_and_fit_a_terminal(name: str) -> None:
    command = cli.commands[name] if name else cli
    context = click.Context(command, info_name=name, terminal_width=80, help_option_names=["-h", "--help"])
    options = [
        (param.opts[0], param.help or "") for param in command.get_params(context) if isinstance(param, click.Option)
    ]
    assert all(text for _, text in options), "an option without a help text"
    texts = [(name, inspect.cleandoc(command.help or "")), *options]
    assert [(where, wrong) for where, text in texts if (wrong := wrong_words(text))] == []
    assert [where for where, text in texts if text.split()[0] in OPENINGS] == []
    assert [entry for entry in entries(command.get_help(context)) if len(entry) > 2] == []


def entries(page: str) -> Iterator[list[str]]:
    """Yield the lines of each option's help text on a help page; notes in brackets, which click adds, do not count."""
    for entry in re.split(r"^  (?=-)", page.partition("\nOptions:\n")[2].partition("\n\n")[0], flags=re.MULTILINE)[1:]:
        first, *rest = re.sub(r"\s+\[(required|[\dx<=]+)\]", "", entry.rstrip()).splitlines()
        yield [*([first] if "  " in first else []), *rest]


def test_code_and_right_phrases_do_not_count() -> None:
    assert wrong_words("A translation unit in `folder`, where ``said`` stands for it.\n\n    cp folder twin") == []
    assert wrong_words("    code\n\nThe folder\nlies there; nobody\nasked\nfor it.") == [
        "folder (directory)",
        "nobody (the user, or the passive)",
        "lies (is located, is wrong)",
        "asked for (requested, supported, detected, unsupported)",
    ]


def test_a_message_is_found_in_a_literal_and_in_an_f_string_and_a_docstring_is_none(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('''"""Not a message."""\nx = f"{x} is no folder {y:>4}"\nraise E("k", help="it stands here")\n''')
    assert list(messages(module)) == [(2, "… is no folder …"), (3, "it stands here")]
    assert [wrong_words(text, IN_MESSAGES) for _, text in messages(module)] == [
        ["folder (directory)"],
        ["stands (is located, is wrong)"],
    ]
