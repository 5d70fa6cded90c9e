"""Build recipes that take SM121 out of CUTLASS's guard: Dockerfiles, scripts and patch files with sed, or Python.

They were written in the belief that the conversion instruction is absent on GB10. Only text is looked at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fp4patch.inspect.containers import folder
from fp4patch.inspect.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECIPE = re.compile(r"([\w.-]*Dockerfile[\w.-]*|Containerfile|[Mm]akefile|.*\.(sh|bash|patch|diff|mk|dockerfile))")
_LARGEST = 1 << 20
_NAME = b"SM121"
_ABOUT = re.compile(r"float_subbyte|CUTLASS_ARCH_MMA_SM12|cutlass", re.IGNORECASE)
_SUBSTITUTES = re.compile(
    r"\bs(?P<sign>[^\w\s\\])(?P<old>(?:\\.|(?!(?P=sign)).)*)(?P=sign)(?P<new>(?:\\.|(?!(?P=sign)).)*)(?P=sign)"
)
_DELETES = re.compile(r"/[^/]*SM121[^/]*/\s*d\b")
_REPLACES = re.compile(r"(?:replace|sub)\(\s*[rf]?(['\"])(?P<old>.*?SM121.*?)\1\s*,\s*[rf]?(['\"])(?P<new>.*?)\3")
_GROUP = re.compile(r"\\?\((.*?)\\?\)")

_REMEDY = (
    "remove it: GB10 has the conversion to E2M1 in hardware. What fails is a build that loses the target's suffix:"
    " compile for 12.1a, or for 12.0f, which runs on both GPUs"
)
_LINK = "https://github.com/vllm-project/vllm/issues/52708"


def examine(path: Path) -> tuple[int, tuple[Finding, ...]]:
    """Return how many recipes there are at a file or below a directory, and a finding for each reverse patch."""
    files = [path] if path.is_file() else [file for file, size in folder(path, texts=True) if size <= _LARGEST]
    recipes = [file for file in files if is_recipe(file)]
    # Of a package's thousands of modules none is a recipe; a script beside a Dockerfile or a patch is.
    beside = {file.parent for file in recipes}
    recipes += [file for file in files if file.suffix == ".py" and file.parent in beside]
    root = path.parent if path.is_file() else path.resolve()
    findings = []
    for file in recipes:
        try:
            content = file.read_bytes()
        except OSError as error:
            findings.append(Finding(Level.RED, file.name, f"cannot be read: {error.strerror}", "check its permissions"))
            continue
        if _NAME not in content:
            continue
        place = file.relative_to(root).as_posix()
        findings += [
            Finding(Level.YELLOW, f"{place}:{line}", f"takes SM121 out of CUTLASS's guard: {words}", _REMEDY, _LINK)
            for line, words in _removals(content.decode(errors="replace"))
        ]
    return len(recipes), tuple(findings)


def is_recipe(path: Path) -> bool:
    """Return whether a file's name is that of a Dockerfile, a script or a patch."""
    return bool(_RECIPE.fullmatch(path.name))


def _removals(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each command or hunk that leaves fewer SM121 than there were."""
    lines = text.splitlines()
    about = ""
    number = 0
    while number < len(lines):
        begin, command = number, lines[number]
        while command.endswith("\\") and number + 1 < len(lines):
            number += 1
            command = command[:-1] + lines[number]
        number += 1
        if command.startswith(("+++ ", "--- ", "diff ")):
            about = command
        elif command.startswith("@@"):
            hunk = []
            while number < len(lines) and lines[number][:1] in ("+", "-", " ", ""):
                if lines[number].startswith(("--- ", "diff ")):
                    break
                hunk.append(lines[number])
                number += 1
            taken = [line for line in hunk if line.startswith("-") and "SM121" in line]
            left = sum(line.count("SM121") for line in hunk if line.startswith("+"))
            if _ABOUT.search(about + "".join(taken)) and sum(line.count("SM121") for line in taken) > left:
                yield begin + 1, taken[0].strip()
        elif "SM121" in command and _ABOUT.search(command) and _removes(command):
            yield begin + 1, " ".join(command.split())[:160]


def _removes(command: str) -> bool:
    if not re.search(r"\b(sed|perl)\b", command):
        return any(one["old"].count("SM121") > one["new"].count("SM121") for one in _REPLACES.finditer(command))
    if _DELETES.search(command):
        return True
    for one in _SUBSTITUTES.finditer(command):
        groups = _GROUP.findall(one["old"])
        new = re.sub(r"(?<!\\)&", one["old"].replace("\\", r"\\\\"), one["new"])
        kept = [groups[int(n) - 1] for n in re.findall(r"\\([1-9])", new) if int(n) <= len(groups)]
        if one["old"].count("SM121") > "".join([new, *kept]).count("SM121"):
            return True
    return False
