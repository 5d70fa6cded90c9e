"""Commands of a build: which of them print, and for which project a command builds."""

from __future__ import annotations

import re

from fp4patch.doctor.readings.reading import Command

_PRINTS = frozenset(
    (
        "echo",
        "printf",
        "cat",
        "tee",
        "grep",
        "sed",
        "awk",
        "perl",
        "test",
        "[",
        "die",
        "log",
        "info",
        "warn",
        "error",
        "logger",
    )
)
"""Programs whose words are texts. ``sed`` and ``perl`` change files: see rewrites.py."""
_OF_PACKAGES = frozenset(
    (
        "git",
        "apt",
        "apt-get",
        "apk",
        "dnf",
        "yum",
        "curl",
        "wget",
        "rm",
        "mkdir",
        "cp",
        "mv",
        "ln",
        "ls",
        "chmod",
        "chown",
        "tar",
        "which",
        "source",
        ".",
        "ccache",
        "sleep",
        "touch",
        "find",
    )
)
"""Programs that compile nothing."""
_INSTALLS = re.compile(r"pip3?(?:\.\d+)?|uv")
# Example: python3.12
_PYTHON = re.compile(r"python[\d.]*|pypy3?")
# Example: flash-attn[all]==2.8.3
_PACKAGE = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[\w, -]*\])?\s*(?:[=<>!~;@].*)?", re.DOTALL)
# Example: git+https://github.com/owner/name.git@main
_URL = re.compile(r"(?:git\+)?(?:https?|ssh|git)://\S*?/([\w.-]+?)(?:\.git)?(?:@[^/]*)?(?:#.*)?/?")
_TAKES_WORD = frozenset(
    [
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "--python",
        "-t",
        "--target",
        "--prefix",
        "-C",
        "--config-settings",
        "-w",
        "--wheel-dir",
        "--cache-dir",
        "--no-binary",
        "--only-binary",
        "--index",
        "--torch-backend",
        "--timeout",
        "--prerelease",
        "--index-strategy",
    ]
)


def prints(command: Command) -> bool:
    """Return whether the words of a command are texts, or those of a program that compiles nothing."""
    return command.program in _PRINTS or command.program in _OF_PACKAGES


def packages(command: Command) -> tuple[str, ...] | None:
    """Return what pip or uv installs; None if the command is neither."""
    words = [word.text for word in command.words]
    if len(words) > 2 and _PYTHON.fullmatch(command.program) and words[1:2] == ["-m"]:
        words = words[2:]
    if not words or not _INSTALLS.fullmatch(words[0].rpartition("/")[2]):
        return None
    words = words[1:]
    if words[:1] == ["pip"]:
        words = words[1:]
    if words[:1] not in (["install"], ["wheel"], ["sync"], ["add"], ["build"]):
        return None
    named, rest = list[str](), iter(words[1:])
    for word in rest:
        if word in ("-e", "--editable"):
            named.append(next(rest, "."))
        elif word in _TAKES_WORD:
            if word in ("-r", "--requirement"):
                named.append(f"requirements of {next(rest, '')}")
            else:
                next(rest, "")
        elif not word.startswith("-"):
            named.append(word)
    return tuple(named)


def other_project(command: Command, cloned: frozenset[str], own: str) -> str:
    """Return the project or package for which a command builds; empty if it can be the one that is asked about.

    ``cloned``: directories that the file gets by git; ``own``: the name of the directory that is asked about.
    """
    folder = command.folder.rstrip("/").rpartition("/")[2]
    if folder in cloned and folder.lower() != own.lower():
        return folder
    named = packages(command)
    if not named:
        return ""
    others = [name for name in named if _name(name, cloned, own)]
    return _name(others[0], cloned, own) if len(others) == len(named) else ""


def _name(word: str, cloned: frozenset[str], own: str) -> str:
    """Return the name of another project; empty for a directory that can be the one that is asked about."""
    url = _URL.fullmatch(word.rpartition(" @ ")[2].strip())
    if url:
        return "" if url[1].lower() == own.lower() else url[1]
    if word.startswith("requirements of "):
        return word
    last = word.rstrip("/").rpartition("/")[2].partition("[")[0]
    if last in cloned and last.lower() != own.lower():
        return last
    if word.startswith((".", "/", "~", "$")) or "/" in word or word.endswith(".whl"):
        return ""
    found = _PACKAGE.fullmatch(word)
    name = found[1] if found else ""
    same = name.lower().replace("_", "-") == own.lower().replace("_", "-")
    return "" if same else name


def clones(commands: list[Command]) -> frozenset[str]:
    """Return the directories into which commands clone other projects."""
    found = set[str]()
    for command in commands:
        words = [word.text for word in command.words]
        if command.program == "git" and "clone" in words:
            named = [word for word in words[words.index("clone") + 1 :] if not word.startswith("-")]
            url = next((word for word in named if "/" in word and _URL.fullmatch(word)), "")
            if url:
                after = named[named.index(url) + 1 :]
                matched = _URL.fullmatch(url)
                target = after[0].rstrip("/").rpartition("/")[2] if after else matched[1] if matched else ""
                found |= {target} - {"", "."}
    return frozenset(found)
