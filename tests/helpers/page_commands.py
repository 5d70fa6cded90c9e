"""The commands of a page: what runs and when, what it prints, and which commands do not run, with the reason.

A fenced ``sh`` block of a page runs as it is. Comments, which readers of the page do not see, have the rest:

    <!-- weekly -->                     The block below takes minutes or much of the network: it runs once a week.
    <!-- sh                             Commands that are not shown. A line behind ``>`` is printed by them, or by the
    fp4patch verify cutlass             block above if there are none, and the page states its numbers, or, if it has
    > 913 checks                        none, its words.
    -->
    <!-- sh weekly                      The same, once a week.
    -->
    <!-- run by tests/commands -->      The commands of the block below are tried there.
    <!-- not run: it needs a GPU -->    They are not tried.
    <!-- run by FILE: `COMMAND` -->     The same for commands of sentences: ``<!-- not run, REASON: `COMMAND` -->``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_PIECE = re.compile(
    r"(?:^<!-- (?P<mark>weekly|run by [^`\n]+|not run: [^`]+?) -->\n+)?"
    r"(?:^```(?P<language>\w*)\n(?P<fenced>(?s:.*?))^```$|^(?P<indented>(?: {4}.*\n)(?:\n?(?: {4}.*\n))*))"
    r"|^<!-- sh(?P<weekly> weekly)?\n(?P<hidden>(?s:.*?))^-->$",
    re.MULTILINE,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_OF_SENTENCES = re.compile(r"<!-- (?:run by (?P<by>\S+)|not run, [^`]+?): (?P<commands>(?:`[^`]+`(?:,\s+)?)+) -->")
_COMMAND = re.compile(
    r"(?:\w+=\S* )*(?:sudo |\S*/bin/)?(?:fp4patch|pip|pipx|python3?|pytest|git|make|docker|sh|curl) \S"
)
_NAME = re.compile(r"(?:fp4patch|git|pip|docker|make) [\w-]+|fp4patch --\w+")
"""Of a command alone, without arguments: sentences about it have it."""


@dataclass(frozen=True)
class Block:
    """Commands that run together, in the page's order."""

    script: str
    weekly: bool = False
    prints: tuple[str, ...] = ()
    """Texts that it prints, and the page states."""


def blocks(page: str) -> list[Block]:
    """Return what a page runs."""
    made: list[Block] = []
    for piece in _PIECE.finditer(page):
        if piece["hidden"] is not None:
            lines = piece["hidden"].splitlines(keepends=True)
            prints = tuple(" ".join(line[2:].split()) for line in lines if line.startswith("> "))
            script = "".join(line for line in lines if not line.startswith("> "))
            if script.strip():
                made.append(Block(script, bool(piece["weekly"]), prints))
            else:
                made[-1] = replace(made[-1], prints=made[-1].prints + prints)
        elif piece["language"] == "sh" and piece["mark"] in {None, "weekly"}:
            made.append(Block(piece["fenced"], piece["mark"] == "weekly"))
    return made


def unstated(page: str) -> list[str]:
    """Return what blocks of a page print, and its own text does not state."""
    text = " ".join(_COMMENT.sub("", page).split())
    numbers = {*_numbers(text)}
    wanted = [line for block in blocks(page) for line in block.prints]
    return [line for line in wanted if line not in text and not (_numbers(line) and {*_numbers(line)} <= numbers)]


def _numbers(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])\d[\d,.]*(?<=\d)(?!\w)", text)


def files(page: str) -> list[str]:
    """Return the files and directories that comments name, in which commands of the page are tried."""
    marks = (piece["mark"] or "" for piece in _PIECE.finditer(page))
    names = (mark.removeprefix("run by ") for mark in marks if mark.startswith("run by "))
    return [*names, *(match["by"] for match in _OF_SENTENCES.finditer(page) if match["by"])]


def untried(page: str, scripts: Iterable[str]) -> list[str]:
    """Return the commands of a page that are in none of these scripts, and that no comment accounts for.

    A word in capitals stands for any other.
    """
    quoted = (match["commands"] for match in _OF_SENTENCES.finditer(page))
    accounted = {" ".join(command.split()) for commands in quoted for command in re.findall("`([^`]+)`", commands)}
    ran = [" ".join(line.split()) for script in scripts for line in script.replace("\\\n", " ").splitlines()]
    shown = [*_of_blocks(page), *(command for command in _of_sentences(page) if command not in accounted)]
    return [command for command in shown if not any(_shape(command).search(line) for line in ran)]


def _of_blocks(page: str) -> Iterator[str]:
    """Yield the commands of the blocks that do not run and have no mark."""
    for piece in _PIECE.finditer(page):
        text = piece["indented"] or (piece["fenced"] if not piece["language"] else None)
        for line in (text or "").replace("\\\n", " ").splitlines() if not piece["mark"] else ():
            command = " ".join(line.removeprefix("    ").removeprefix("$ ").partition(" # ")[0].split())
            if line.startswith("    ") != line.startswith("     ") and _COMMAND.match(command):
                yield command


def _of_sentences(page: str) -> Iterator[str]:
    for code in re.findall(r"`([^`]+)`", _COMMENT.sub("", _PIECE.sub("", page))):
        command = " ".join(code.split())
        tests = command.startswith("pytest tests/") and not re.search("[A-Z]{2}", command)  # the whole suite runs it
        if _COMMAND.match(command) and not _NAME.fullmatch(command) and not tests:
            yield command


def _shape(command: str) -> re.Pattern[str]:
    words = (r"\S+" if re.search("^[A-Z_]{2,}$|==[A-Z]+$", word) else re.escape(word) for word in command.split())
    return re.compile(rf"(?:^|[ (/]){' '.join(words)}(?:$|[ );|&])")
