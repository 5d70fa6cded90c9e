"""The reader of Python against Python: what a setup.py leaves in its list of flags and in the environment."""

import ast
import os
import random
from collections.abc import Callable
from types import SimpleNamespace

from packaging.version import Version
from share import first

from fp4patch.doctor.readings.python import Many, _Module
from fp4patch.doctor.readings.reading import Kind, Value

SCRIPTS = 2500


class Scripts:
    """Scripts of the forms that a setup.py has."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._depth = 0

    def text(self) -> str:
        head = "flags = ['-O3']\nname = '90'\narchs = ['90', '120a']\n"
        return head + "\n".join(self.line() for _ in range(self._random.randint(2, 7))) + "\n"

    def _any(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    def word(self) -> str:
        return self._random.choice(("90", "120a", "12.0", "12.1a", "9.0;12.0", "", "x"))

    def value(self) -> str:
        word, key = self.word(), self._random.choice(("ARCHS", "LIST", "MODE"))
        return self._any(
            lambda: repr(word),
            lambda: "name",
            lambda: f"f'{{name}}{word}'",
            lambda: f"{word!r} + name",
            lambda: f"os.environ.get({key!r}, {word!r})",
            lambda: f"os.getenv({key!r}) or {word!r}",
            lambda: "';'.join(archs)",
            lambda: "';'.join(f'{a}f' for a in archs)",
            lambda: f"'%s-%s' % ({word!r}, name)",
            lambda: f"'{{}}{word}'.format(name)",
            lambda: f"{word!r}.replace('.', '')",
            lambda: f"{word!r} if os.environ.get({key!r}) else {self.word()!r}",
            lambda: f"{word!r} if name == '90' else {self.word()!r}",
            lambda: "archs[0]",
            lambda: "str(120)",
        )

    def test(self) -> str:
        key, word = self._random.choice(("ARCHS", "LIST", "MODE")), self.word()
        return self._any(
            lambda: f"{key!r} not in os.environ",
            lambda: f"os.environ.get({key!r}) is None",
            lambda: f"not os.getenv({key!r})",
            lambda: f"name == {word!r}",
            lambda: f"name != {word!r} and os.getenv({key!r}) is None",
            lambda: "CUDA_VERSION >= (12, 8)",
            lambda: "CUDA_VERSION < Version('13.0')",
            lambda: "'120a' in archs",
            lambda: "True",
            lambda: "len(archs) > 1",
        )

    def simple(self) -> str:
        key = self._random.choice(("ARCHS", "LIST", "MODE"))
        return self._any(
            lambda: f"flags.append('-arch=' + {self.value()})",
            lambda: "flags += ['-gencode', f'arch=compute_{name},code=sm_{name}']",
            lambda: f"flags.extend([{self.value()}, '-D' + name])",
            lambda: f"name = {self.value()}",
            lambda: f"os.environ[{key!r}] = {self.value()}",
            lambda: f"os.environ.setdefault({key!r}, {self.value()})",
            lambda: f"archs = {self.value()}.split(';')",
            lambda: f"archs.append({self.value()})",
            lambda: "archs = [a + 'x' for a in archs]",
            lambda: f"flags = flags + ['-x' + {self.value()}]",
            lambda: f"print('-gencode arch=compute_100a', {self.value()})",
            lambda: "'''os.environ['LIST'] = 12'''",
            lambda: "# flags.append('-arch=sm_1')",
            lambda: f"os.environ.pop({key!r}, None)",
            lambda: f"name, other = {self.value()}, '1'",
            lambda: "flags.insert(0, name)",
            lambda: "flags.remove('-O3') if '-O3' in flags else None",
        )

    def line(self) -> str:
        self._depth += 1
        made = self._any(
            self.simple,
            self.simple,
            self.simple,
            self.compound if self._depth < 3 else self.simple,
        )
        self._depth -= 1
        return made

    def block(self) -> str:
        lines = "\n".join(self.line() for _ in range(self._random.randint(1, 2)))
        return "\n".join(f"    {line}" for line in lines.splitlines()) + "\n    pass"

    def compound(self) -> str:
        return self._any(
            lambda: f"if {self.test()}:\n{self.block()}",
            lambda: f"if {self.test()}:\n{self.block()}\nelse:\n{self.block()}",
            lambda: f"if {self.test()}:\n{self.block()}\nelif {self.test()}:\n{self.block()}",
            lambda: f"for name in list(archs):\n{self.block()}",
            lambda: f"for a in ['90', {self.value()}]:\n    flags.append('-a' + a)",
            lambda: f"try:\n{self.block()}\nexcept KeyError:\n{self.block()}",
            lambda: f"while name == '{self.word()}':\n{self.block()}\n    break",
        )


def by_python(text: str) -> tuple[list[str], dict[str, str]]:
    """The flags and the environment that a script leaves."""
    environment: dict[str, str] = {}
    fake = SimpleNamespace(environ=environment, getenv=environment.get)
    names = {"os": fake, "CUDA_VERSION": Release("13.0"), "Version": Version, "print": lambda *_: None}
    exec(text, names)
    return names["flags"], environment  # type: ignore[return-value]


class Release(Version):
    """A release that is compared with a tuple, too."""

    def __ge__(self, other: object) -> bool:
        return self.release >= (other if isinstance(other, tuple) else other.release)  # type: ignore[attr-defined]

    def __lt__(self, other: object) -> bool:
        return self.release < (other if isinstance(other, tuple) else other.release)  # type: ignore[attr-defined]


def test_flags_and_environment_are_what_python_leaves() -> None:
    begin, known, unknown = first("python"), 0, 0
    for number in range(begin, begin + SCRIPTS):
        text = Scripts(number).text()
        try:
            flags, environment = by_python(text)
        except (AttributeError, IndexError, TypeError, ValueError):  # a script that fails says nothing
            continue
        module = _Module(Version("13.0"))
        module.run(ast.parse(text).body)
        mine = module._values["flags"]
        if not isinstance(mine, Many) or not mine.whole or any(item.unknown or item.condition for item in mine.items):
            unknown += 1
        else:
            known += 1
            assert [item.text for item in mine.items] == flags, f"script {number}:\n{text}"
        for name in ("ARCHS", "LIST", "MODE"):
            value = module._environment.get(name)
            if value is not None and value.unknown:
                unknown += 1
                continue
            known += 1
            assert (value.text if value else None) == environment.get(name), f"{name} in script {number}:\n{text}"
    assert known > 2000
    assert known > 2 * unknown, (known, unknown)


def test_the_environment_of_this_process_plays_no_part() -> None:
    os.environ["LIST"] = "9.0"
    try:
        module = _Module(Version("13.0"))
        module.run(ast.parse("os.environ.setdefault('LIST', '12.1a')").body)
    finally:
        del os.environ["LIST"]
    (reading,) = module.result.readings
    assert (reading.values[0].text, reading.kind) == ("12.1a", Kind.DEFAULT)


OPEN = "open_one()"
"""A condition that is not known."""


def left_by(text: str) -> tuple[Many, dict[str, Value]]:
    """The flags and the environment after a script, as they are read."""
    module = _Module(Version("13.0"))
    module.run(ast.parse(text).body)
    flags = module._values["flags"]
    assert isinstance(flags, Many)
    return flags, module._environment


def test_what_two_branches_share_is_counted() -> None:
    flags, _ = left_by(f"flags = ['-a', '-b']\nif {OPEN}:\n    flags = ['-a', '-b', '-a']\n")
    assert [(item.text, item.condition) for item in flags.items] == [("-a", ""), ("-b", ""), ("-a", OPEN)]


def test_an_order_that_differs_is_not_shared() -> None:
    flags, _ = left_by(f"if {OPEN}:\n    flags = ['-a', '-b']\nelse:\n    flags = ['-b', '-a']\n")
    assert all(item.condition for item in flags.items)
    assert len(flags.items) == 4


def test_an_element_of_a_list_that_is_partly_known_is_not_known() -> None:
    lines = (
        f"a = ['90']\nif {OPEN}:\n    a = ['100']",
        "os.environ['ARCHS'] = a[0]",
        "os.environ['LIST'] = ';'.join(a)",
        "flags = []\nif a:\n    flags = ['-a']",
        f"one = []\nif {OPEN}:\n    one = ['x']\nif one:\n    flags.append('-b')",
    )
    flags, environment = left_by("\n".join(lines))
    assert {name: value.known for name, value in environment.items()} == {"ARCHS": None, "LIST": None}
    assert [bool(item.condition) for item in flags.items] == [True, True]


def test_what_one_branch_alone_sets_is_perhaps_in_the_environment() -> None:
    lines = (
        "flags = ['-O3']",
        f"if {OPEN}:\n    os.environ['LIST'] = '90'\n    os.environ['MODE'] = 'x'\nelse:\n    os.environ['MODE'] = 'y'",
        "if 'LIST' in os.environ:\n    flags.append('-list')",
        "if 'LIST' not in os.environ:\n    flags.append('-none')",
        "if 'MODE' in os.environ:\n    flags.append('-mode')",
        "os.environ.setdefault('LIST', '120a')",
        "if 'LIST' in os.environ:\n    flags.append('-now')",
        f"while {OPEN}:\n    os.environ['ARCHS'] = 'x'",
        "if 'ARCHS' in os.environ:\n    flags.append('-loop')",
    )
    flags, environment = left_by("\n".join(lines))
    certain = {item.text for item in flags.items if not item.condition}
    assert certain == {"-O3", "-mode", "-now"}
    assert {item.text for item in flags.items} - certain == {"-list", "-none", "-loop"}
    assert environment["LIST"].known is None


def test_a_known_value_is_not_none() -> None:
    lines = (
        "flags = ['-O3']",
        "name = '90'",
        "if name is None:\n    flags.append('-a')",
        "if name is not None:\n    flags.append('-b')",
        "if flags is None:\n    flags.append('-c')",
        f"if {OPEN} is None:\n    flags.append('-e')",
    )
    flags, _ = left_by("\n".join(lines))
    assert [(item.text, bool(item.condition)) for item in flags.items] == [("-O3", False), ("-b", False), ("-e", True)]


def test_what_follows_a_return_that_perhaps_runs_is_conditional() -> None:
    lines = (
        "flags = []",
        f"def f():\n    if {OPEN}:\n        os.environ['LIST'] = '90'\n        return\n    os.environ['LIST'] = '120a'",
        "f()",
        f"def g():\n    for one in {OPEN}:\n        return\n    os.environ['ARCHS'] = '120a'",
        "g()",
        f"def h():\n    if {OPEN}:\n        return 1\n    else:\n        return 2\n    os.environ['MODE'] = 'never'",
        "h()",
        f"def k():\n    if {OPEN}:\n        raise ValueError\n    os.environ['ONE'] = 'x'",
        "k()",
        "os.environ['LAST'] = 'y'",
    )
    module = _Module(Version("13.0"))
    module.run(ast.parse("\n".join(lines)).body)
    known = {name: value.known for name, value in module._environment.items()}
    assert known == {"LIST": None, "ARCHS": None, "ONE": "x", "LAST": "y"}
    conditional = {reading.values[0].text for reading in module.result.readings if reading.condition}
    assert conditional >= {"90", "120a"}
    assert not conditional & {"y"}


def test_a_condition_grows_by_one_part_for_each_return() -> None:
    returns = "".join(f"    if one({number}):\n        return\n" for number in range(60))
    module = _Module(Version("13.0"))
    module.run(ast.parse(f"def f():\n{returns}    os.environ['LIST'] = '90'\nf()\n").body)
    (condition,) = (reading.condition for reading in module.result.readings)
    assert condition.count("no return under") == 60
    assert len(condition) < 60 * 60
