"""The reader of Makefiles against GNU make: what each variable holds at the end of a file."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from fp4patch.doctor.readings.make import _Makefile, read_make
from fp4patch.doctor.readings.reading import joined

FILES = 2000
FIRST = 0
"""Number of the first one. Others than these are not all read right yet."""
NAMES = ("A", "B", "FLAGS", "LIST")
_LETTERS = "ABFGILST"


class Makefiles:
    """Makefiles of the forms that projects have; each variable has the number of its file in its name."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._number = number

    def text(self) -> str:
        return "\n".join(self.line() for _ in range(self._random.randint(3, 8))) + "\n"

    def _any(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    def name(self) -> str:
        return f"{self._random.choice(NAMES)}{self._number}"

    def word(self) -> str:
        return self._random.choice(("90", "120a", "121a", "-arch=sm_120a", "x", "12.0", "sm_121", "-DA=1"))

    def value(self) -> str:
        name, word = self.name(), self.word()
        return self._any(
            self.word,
            lambda: f"{word} {self.word()}",
            lambda: f"$({name})",
            lambda: f"{word} ${{{name}}}",
            lambda: f"x$({name})y",
            lambda: f"$(foreach s,90 {word},-gencode arch=compute_$(s),code=sm_$(s))",
            lambda: f"$(foreach s,$({name}),-a$(s))",
            lambda: f"$(addprefix sm_,90 {word})",
            lambda: f"$(addsuffix a,$({name}))",
            lambda: f"$(subst .,,{word} 12.1)",
            lambda: f"$(patsubst sm_%,compute_%,sm_90 {word})",
            lambda: f"$(filter 90 120%,90 120a 80 {word})",
            lambda: f"$(filter-out 90,90 120a $({name}))",
            lambda: f"$(firstword {word} $({name}))",
            lambda: f"$(word 2,a {word} c)",
            lambda: f"$(if $({name}),{word},none)",
            lambda: f"$(strip  {word}   b )",
            lambda: f"$({name}:%a=%f)",
            lambda: f"{word} # {name} = 5",
            lambda: f"{word} \\\n  {self.word()}",
            lambda: "$(sort 90 120 90)",
            lambda: f"$$({name})",
            lambda: f'"{word} b"',
            lambda: "",
        )

    def blank(self) -> str:
        return self._any(lambda: "", lambda: "", lambda: " ", lambda: "\t")

    def assignment(self) -> str:
        sign = self._random.choice(("=", ":=", "?=", "+=", "::="))
        name, value = self.name(), self.value()
        if sign in ("=", "?=", "+="):  # a recursive variable that refers to itself ends make
            value = value.replace(f"({name}", "(OTHER").replace(f"{{{name}", "{OTHER")
        return f"{name} {sign} {value}"

    def line(self) -> str:
        name = self.name()
        return self._any(
            self.assignment,
            self.assignment,
            self.assignment,
            lambda: f"# {name} = 12.1a",
            lambda: f"export {self.name()} := {self.word()}",
            lambda: f"$(info {name} = -arch=sm_90)",
            lambda: f"$(foreach s,90 120a,$(eval {name} := $({name}) -s$(s)))",
            lambda: (
                f"ifeq ({self.blank()}$({name}){self.blank()},{self.blank()}{self.word()}{self.blank()})\n"
                f"{self.assignment()}\nelse\n{self.assignment()}\nendif"
            ),
            lambda: f"ifneq ($({name}),)\n{self.assignment()}\nendif",
            lambda: f"ifdef {name}\n{self.assignment()}\nelse ifeq ({self.word()},90)\n{self.assignment()}\nendif",
            lambda: f"ifndef {name}\n{name} := {self.word()}\nendif",
            lambda: f"ifeq '{self.word()}{self.blank()}'{self.blank()}'90'\n{self.assignment()}\nendif",
            lambda: "",
        )


def by_make(folder: Path, files: dict[int, str]) -> dict[str, str]:
    """The value of each variable, by make."""
    found: dict[str, str] = {}
    for number, text in files.items():
        shown = "".join(f"$(info {name}{number}=$({name}{number}))\n" for name in NAMES)
        files[number] = text + shown
    pending = list(files)
    while pending:
        (folder / "Makefile").write_text("".join(files[number] for number in pending) + "all:\n\t@true\n")
        ran = subprocess.run(
            ["make", "-s"], cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, check=False
        )
        wrong = ran.stderr.partition("Recursive variable '")[2].partition("'")[0]
        if not ran.returncode:
            for line in ran.stdout.splitlines():
                name, sign, value = line.partition("=")
                if sign and name.strip(_LETTERS).isdigit() and " " not in name:
                    found[name] = " ".join(value.split())
            return found
        assert wrong, ran.stderr[:300]
        pending.remove(int(wrong.lstrip(_LETTERS)))
    return found


def test_each_variable_is_what_make_makes_of_it(tmp_path: Path) -> None:
    begin = FIRST
    files = {number: Makefiles(number).text() for number in range(begin, begin + FILES)}
    texts = dict(files)
    made = by_make(tmp_path, files)
    known = unknown = 0
    for number, text in texts.items():
        makefile = _Makefile()
        makefile.run(text)
        for name in (f"{one}{number}" for one in NAMES):
            if name not in made:
                continue
            values = makefile.value(name) if name in makefile.variables else ()
            if makefile.result.unread or any(value.unknown or value.condition for value in values):
                unknown += 1
                continue
            known += 1
            assert " ".join(joined(values).text.split()) == made[name], f"{name} in file {number}:\n{text}"
    assert known > 2000
    assert known > unknown, (known, unknown)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ARCH = 120\nfoo bar\nall:\n\tnvcc -arch=sm_$(ARCH)\n", 2),
        ("ARCH = 120\nendif\nARCH = 121\nall:\n\tnvcc -arch=sm_$(ARCH)\n", 2),
        ("<<<<<<< HEAD\nARCH = 121\nall:\n\tnvcc -arch=sm_$(ARCH)\n", 1),
        ("ARCH = 120\nall:\n\tif x ); then nvcc; fi\n\tnvcc -arch=sm_$(ARCH)\n", 3),
        ("ARCH = 120\nall:\n\tnvcc -arch=sm_$(ARCH)\n", 0),
    ],
)
def test_lines_that_make_refuses_are_named(text: str, line: int, tmp_path: Path) -> None:
    read = read_make(text, Version("13.0"))
    assert (read.unread[0][0] if read.unread else 0) == line
    (tmp_path / "Makefile").write_text(text)
    made = subprocess.run(["make", "-n"], cwd=tmp_path, capture_output=True, text=True, check=False)
    shell = subprocess.run(["sh", "-n"], input=made.stdout, capture_output=True, text=True, check=False)
    assert bool(made.returncode or shell.returncode) is bool(line)
