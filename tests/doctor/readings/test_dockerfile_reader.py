"""The reader of Dockerfiles against BuildKit's own parser: instructions, their lines, and the commands of each RUN."""

import random
from collections.abc import Callable

import pytest
from packaging.version import Version
from share import first

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.dockerfile import read_dockerfile
from fp4patch.doctor.readings.reading import Read

buildkit = pytest.importorskip("dockerfile", reason="BuildKit's parser has no wheel for this machine")

FILES = 2000
CUDA = Version("13.0")


class Dockerfiles:
    """Dockerfiles of the forms that projects have."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._probes = 0

    def text(self) -> str:
        lines = [self.line() for _ in range(self._random.randint(3, 8))]
        return "\n".join(["FROM nvidia/cuda:13.0.1-devel AS build", *lines]) + "\n"

    def _any(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    def name(self) -> str:
        return self._random.choice(("ARCHS", "TORCH_CUDA_ARCH_LIST", "FLAGS", "MODE"))

    def value(self) -> str:
        return self._random.choice(
            (
                "12.1a",
                '"12.0 12.1a"',
                "'9.0;12.0'",
                "a\\ b",
                "x=y",
                '"say \\"no\\""',
                "120-real",
                "$ARCHS",
                "${MODE:-on}",
            )
        )

    def probe(self) -> str:
        self._probes += 1
        return f"probe {self._probes} {self._random.choice(('a', '12.1a', '-DA=b', '-arch=sm_120a'))}"

    def line(self) -> str:
        name, value = self.name(), self.value()
        return self._any(
            lambda: f"ENV {name}={value}",
            lambda: f"ENV {name}={value} {self.name()}={self.value()}",
            lambda: f"ENV {name}={value} \\\n    # {self.name()}=9.0\n    {self.name()}={self.value()}",
            lambda: f"ENV {name} 12.0 12.1",
            lambda: f"ARG {name}={value}",
            lambda: f"ARG {name}",
            lambda: f"# ENV {name}={value}",
            lambda: f'LABEL note="ENV {name}=12.0"',
            lambda: f"RUN {self.probe()} && {name}=1 {self.probe()}",
            lambda: f"RUN {self.probe()} \\\n # a comment\n && {self.probe()} \\\n\n && {self.probe()}",
            lambda: f"run --mount=type=cache,target=/x {self.probe()}",
            lambda: f'RUN ["probe", "{self._next()}", "a b"]',
            lambda: f"RUN <<EOF\n{self.probe()}\n{self.probe()}\nEOF",
            lambda: f"RUN <<'EOF' bash\n{self.probe()}\nEOF",
            lambda: f"COPY <<EOF /x.sh\nexport {name}=12.0\n{self.probe()}\nEOF",
            lambda: f"RUN echo 'ENV {name}=12.0' ; {self.probe()}",
            lambda: "WORKDIR /src",
            lambda: "FROM build AS next",
            lambda: f"FROM other:1 AS other\nRUN {self.probe()}",
            lambda: f'CMD ["probe", "{self._next()}"]',
        )

    def _next(self) -> int:
        self._probes += 1
        return self._probes


def by_buildkit(text: str) -> tuple[list[tuple[int, str]], list[list[str]]]:
    """The lines of each ENV and ARG with the names that it sets, and the words of each command of a RUN."""
    names, ran = [], list[list[str]]()
    for one in buildkit.parse_string(text):
        if one.cmd.upper() == "ENV":
            names += [(one.start_line, name) for name in one.value[::2]]
        elif one.cmd.upper() == "RUN" and one.json:
            ran.append(list(one.value))
        elif one.cmd.upper() == "RUN":
            script = one.value[0]
            if one.heredocs:
                script = one.heredocs[0].content
            ran += [[word.text for word in command.words] for command in shell.read(script).commands]
    return names, ran


def test_instructions_are_those_of_buildkits_parser() -> None:
    begin, seen = first("dockerfile"), 0
    for number in range(begin, begin + FILES):
        text = Dockerfiles(number).text()
        names, ran = by_buildkit(text)
        mine: Read = read_dockerfile(text, CUDA)
        assert not mine.unread, f"file {number}:\n{text}"
        env = [reading for reading in mine.readings if any(reading.name == name for _, name in names)]
        lines = {(line, name) for line, name in names}
        found = {
            (max(line for line, _ in names if line <= reading.line), reading.name)
            for reading in env
            if any(line <= reading.line for line, _ in names)
        }
        assert lines <= found, f"file {number}:\n{text}\n{lines - found}"
        words = [[word.text for word in command.words] for command in mine.commands]
        assert words == ran, f"file {number}:\n{text}"
        seen += len(names) + len(ran)
    assert seen > FILES


def test_an_argument_is_for_its_stage_and_the_environment_for_those_that_follow() -> None:
    text = (
        "ARG A=12.0\nFROM x AS one\nARG A\nARG B=1\nENV C=${A}f\nRUN probe 1\n"
        "FROM one AS two\nRUN probe 2\nFROM y\nRUN probe 3\n"
    )
    one, two, three = (
        {name: variable.value.text for name, variable in command.environment.items()}
        for command in read_dockerfile(text, CUDA).commands
    )
    assert (one, two, three) == ({"A": "12.0", "B": "1", "C": "12.0f"}, {"C": "12.0f"}, {})


def test_a_file_for_another_shell_is_not_read() -> None:
    assert read_dockerfile("# escape=`\nFROM x\nENV A=1\n", CUDA).unread
    assert read_dockerfile('FROM x\nSHELL ["cmd", "/S", "/C"]\nRUN set A=1\n', CUDA).unread


DAMAGED = (
    "FOO x",
    "FOO x \\\n  ENV ARCHS=1",
    "=======",
    "{{ macro }}",
    "}}",
    "ENV =x",
    "RUN probe )",
    "RUN probe ) \\\n  && probe 9",
    'RUN ["probe",',
    "ARG",
)
"""Lines that BuildKit's parser takes, and that docker or the shell refuses."""


def test_a_damaged_instruction_is_named_and_the_others_are_read() -> None:
    seen = 0
    for number in range(200):
        text, chosen = Dockerfiles(number).text(), random.Random(number)
        begins = [line for line, _ in enumerate(text.split("\n")[:-1], 1) if line in dict(by_buildkit(text)[0])]
        if not begins:
            continue
        at, damage = chosen.choice(begins), chosen.choice(DAMAGED)
        lines = text.split("\n")
        mine = read_dockerfile("\n".join([*lines[: at - 1], damage, *lines[at - 1 :]]), CUDA)
        without, more = read_dockerfile(text, CUDA), 1 + damage.count("\n")
        where = f"file {number}, {damage!r} before line {at}:\n{text}\n{mine.unread}"
        assert mine.unread, where
        assert all(at <= line < at + more for line, _ in mine.unread), where
        expected = [(one.name, one.line + more * (one.line >= at)) for one in without.readings]
        assert [(one.name, one.line) for one in mine.readings] == expected, where
        assert [str(one) for one in mine.commands] == [str(one) for one in without.commands], where
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("line", ["ENV ARCHS=1 MODE", "ENV ARCHS", "ENV ARCHS=1 =2"])
def test_nothing_is_known_of_the_names_in_an_instruction_that_is_not_read(line: str) -> None:
    read = read_dockerfile(f"FROM x\nENV ARCHS=12.0\nRUN probe 1\n{line}\nRUN probe 2 $ARCHS\n", CUDA)
    assert read.unread[0][0] == 4
    assert [(one.name, one.line) for one in read.readings] == [("ARCHS", 2)]
    assert all(word.unknown for command in read.commands if command.line > 4 for word in command.words[2:])
