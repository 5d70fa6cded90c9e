"""A file of patches that is no file, or too much of one: one clear error each, and in bounded time and memory."""

import os
import resource
import time
from pathlib import Path

import pytest

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.reading import Reader

MOST_SECONDS = 5
MOST_KIB = 200 << 10
MEMBERS = ", ".join(f"N{n} = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]" for n in range(7))
HOSTILE = {
    "nested arrays": f"a = {'[' * 5000}{']' * 5000}\n",
    "nested tables": f"a = {'{a=' * 5000}1{'}' * 5000}\n",
    "dotted keys": f"{'.'.join('a' * 5000)} = 1\n",
    "a long integer": f"a = {'9' * 100_000}\n",
    "a large family": f"[[edits]]\neach = {{ {MEMBERS} }}\nop = 'replace'\n",
    "a family in strings": f"reaches = [{{ each = {{ {MEMBERS} }}, text = '{{N0}}' }}]\n",
    "unknown keys": "".join(f"k{n} = 1\n" for n in range(200_000)),
    "as many as fit": "".join(f"k{n}=1\n" for n in range(90_000)),
}


def problems(path: Path) -> list[str]:
    reader = Reader(path.parent)
    assert reader.read(Patch, path) is None
    return [f"{problem.file} {problem.expected}: {problem.found}" for problem in reader.problems]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_a_few_problems(tmp_path: Path, text: str) -> None:
    path = tmp_path / "patch.toml"
    path.write_text(text)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = problems(path)
    assert 1 <= len(found) <= 25
    assert all(line.startswith("patch.toml ") and len(line) < 300 for line in found)
    assert time.process_time() - began < MOST_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KIB


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "patch.toml"
    os.mkfifo(path)
    assert problems(path) == ["patch.toml TOML: something that is no regular file"]
    directory = tmp_path / "other.toml"
    directory.mkdir()
    assert len(problems(directory)) == 1
