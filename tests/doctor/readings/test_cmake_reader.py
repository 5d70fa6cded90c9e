"""The reader of CMake files against cmake -P: what each variable holds at the end of a script."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from packaging.version import Version
from share import first

from fp4patch.adapters import vllm
from fp4patch.doctor.readings.cmake import _Script
from fp4patch.edits.cmake import parse

SCRIPTS = 2000
NAMES = ("A", "ARCHS", "FLAGS", "OUT")


class Scripts:
    """Scripts of the forms that projects have; each variable has the number of its script in its name."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._number = number
        self._depth = 0

    def text(self) -> str:
        return "\n".join(self.line() for _ in range(self._random.randint(3, 8))) + "\n"

    def _any(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    def name(self) -> str:
        return f"{self._random.choice(NAMES)}_{self._number}"

    def word(self) -> str:
        return self._random.choice(
            ("90", "120a", "121a-real", "-arch=sm_120a", "x", "12.0", "native", "ON", "120f;121a")
        )

    def value(self) -> str:
        name, word = self.name(), self.word()
        return self._any(
            self.word,
            lambda: f"{word} {self.word()}",
            lambda: f'"{word}"',
            lambda: f"${{{name}}}",
            lambda: f'"${{{name}}}"',
            lambda: f'"{word} ${{{name}}}"',
            lambda: f"x${{{name}}}y",
            lambda: f"[[{word} ${{{name}}}]]",
            lambda: f'"a\\"b {word}"',
            lambda: f"{word} # set({name} 5)\n",
            lambda: f"#[[ {word} ]] {self.word()}",
        )

    def test(self) -> str:
        name, word = self.name(), self.word()
        return self._any(
            lambda: f"DEFINED {name}",
            lambda: f"NOT DEFINED {name}",
            lambda: f'"${{{name}}}" STREQUAL "{word}"',
            lambda: f"{name} STREQUAL {word.partition(';')[0]}",
            lambda: "TRUE",
            lambda: "NOT ON",
            lambda: f"120a IN_LIST {name}",
            lambda: f"CUDA_VERSION VERSION_GREATER_EQUAL {self._random.choice(('12.8', '13.0', '13.1'))}",
            lambda: f"(1 OR 0) AND NOT DEFINED {name}",
            lambda: f"DEFINED ENV{{NOTHING{self._number}}}",
            lambda: f"{name}",
            lambda: f'"${{{name}}}" MATCHES 12',
            lambda: "3 GREATER 2 AND 2 LESS_EQUAL 2",
        )

    def assignment(self) -> str:
        name, value = self.name(), self.value()
        return self._any(
            lambda: f"set({name} {value})",
            lambda: f"SET ( {name} {value} )",
            lambda: f"list(APPEND {name} {value})",
            lambda: f"list(PREPEND {name} {value})",
            lambda: f"list(REMOVE_ITEM {name} {self.word()})",
            lambda: f"list(REMOVE_DUPLICATES {name})",
            lambda: f'string(APPEND {name} " {self.word()}")',
            lambda: f'string(REPLACE "." "" {name} "{self.word()}")',
            lambda: f"string(CONCAT {name} a ${{{self.name()}}})",
            lambda: f"string(TOUPPER {self.word().partition(';')[0]} {name})",
            lambda: f"unset({name})",
            lambda: f'set({name} {self.word()} CACHE STRING "")',
            lambda: f'list(TRANSFORM {name} APPEND "-real")',
            lambda: f"list(LENGTH {self.name()} {name})",
            lambda: f"string(REGEX REPLACE 1 2 {name} {self.word().partition(';')[0]})",
        )

    def line(self) -> str:
        if self._depth > 1:
            return self.assignment()
        self._depth += 1
        made = self._any(
            self.assignment,
            self.assignment,
            self.assignment,
            lambda: f'message(STATUS "set({self.name()} 12.1a)")',
            lambda: f"# set({self.name()} 5)",
            lambda: f"#[[\nset({self.name()} 5)\n]]",
            lambda: f"if({self.test()})\n{self.line()}\nelse()\n{self.line()}\nendif()",
            lambda: f"if({self.test()})\n{self.line()}\nelseif({self.test()})\n{self.line()}\nendif()",
            lambda: f"foreach(i 90 {self.word()})\nlist(APPEND {self.name()} ${{i}})\nendforeach()",
            lambda: (
                f"foreach(i IN LISTS {self.name()} ITEMS q)\n{self.line()}\n"
                f'string(APPEND {self.name()} "${{i}}")\nendforeach()'
            ),
            lambda: (
                f"function(f{self._number} one)\nset({self.name()} ${{one}} PARENT_SCOPE)\n"
                f"set({self.name()} 1)\nendfunction()\nf{self._number}({self.word()})"
            ),
            lambda: (
                f"macro(m{self._number} one)\n{self.assignment()}\n"
                f"set({self.name()} ${{one}})\nendmacro()\nm{self._number}({self.word()})"
            ),
        )
        self._depth -= 1
        return made


def by_cmake(folder: Path, scripts: dict[int, str]) -> dict[str, str | None]:
    """The value of each variable, by cmake."""
    parts = ["cmake_minimum_required(VERSION 3.25)", "set(CUDA_VERSION 13.0)"]
    for number, text in scripts.items():
        parts.append(text)
        for name in (f"{one}_{number}" for one in NAMES):
            parts.append(
                f'if(DEFINED {name})\nfile(APPEND out "{name}=${{{name}}}\\n")\n'
                f'else()\nfile(APPEND out "{name}\\n")\nendif()'
            )
    (folder / "all.cmake").write_text("\n".join(parts))
    cmake = vllm.cmake()
    assert cmake
    ran = subprocess.run(
        [cmake, "-P", "all.cmake"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[:500]
    found: dict[str, str | None] = {}
    for line in (folder / "out").read_text().splitlines():
        name, sign, value = line.partition("=")
        found[name] = value if sign else None
    return found


def test_each_variable_is_what_cmake_makes_of_it(tmp_path: Path) -> None:
    begin = first("cmake") % 1_000_000 * 10_000
    scripts = {number: Scripts(number).text() for number in range(begin, begin + SCRIPTS)}
    made = by_cmake(tmp_path, scripts)
    known = unknown = 0
    for number, text in scripts.items():
        script = _Script(Version("13.0"))
        script.run(parse(text).commands)
        for name in (f"{one}_{number}" for one in NAMES):
            values = script.variables.get(name)
            if script.result.unread or any(value.unknown or value.condition for value in values or ()):
                unknown += 1
                continue
            known += 1
            text_of = ";".join(value.text for value in values or ())
            expected = made[name]
            assert (text_of, values is None) == (expected or "", expected is None), (
                f"{name} in script {number}:\n{text}"
            )
    assert known > 2000
    assert known > unknown, (known, unknown)
