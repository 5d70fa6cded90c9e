"""The reader of shell scripts against bash: what each command is given, and what is in its environment."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fp4patch.doctor.readings import shell
from fp4patch.doctor.readings.reading import Command

SCRIPTS = 500
FIRST = 1500
"""Number of the first one. Others than these are not all read right yet."""
FIRST_DAMAGED = 0
NAMES = ("ARCHS", "LIST", "FLAGS", "MODE", "ONE")
PROBE = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  FILE* log = fopen(getenv("PROBE_LOG"), "a");
  for (int i = 1; i < argc; ++i) fprintf(log, "%s\x1f", argv[i]);
  fputs("\x1e", log);
  const char* names[] = {"ARCHS", "LIST", "FLAGS", "MODE", "ONE"};
  for (int i = 0; i < 5; ++i) if (getenv(names[i])) fprintf(log, "%s=%s\x1f", names[i], getenv(names[i]));
  fputs("\x1d", log);
  fclose(log);
}
"""


class Scripts:
    """Scripts of the forms that build scripts have, with a numbered probe in many places."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._probes = 0
        self._depth = 0

    def text(self) -> str:
        return "\n".join(self.statement() for _ in range(self._random.randint(2, 7))) + "\n"

    def _any(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    def name(self) -> str:
        return self._random.choice(NAMES)

    def word(self) -> str:
        plain = (
            "12.0",
            "12.1a",
            "9.0;12.0f",
            "120",
            "sm_121a",
            "x",
            "-gencode",
            "arch=compute_120a,code=sm_120a",
            "on",
        )
        return self._random.choice(plain)

    def value(self) -> str:
        return self._any(
            lambda: self._random.choice(("12.0", "12.1a", "120", "a=b", "x", "on", "12.0+PTX", r"a\;b", "''", '""')),
            lambda: f'"{self.word()}"',
            lambda: f"'{self.word()} ${self.name()}'",
            lambda: f"${self.name()}",
            lambda: f'"${{{self.name()}}}"',
            lambda: f'"{self.word()} ${self.name()}"',
            lambda: f"${{{self.name()}:-{self._random.choice(('12.0', '9.0', 'x'))}}}",
            lambda: f'"${{{self.name()}:-{self.word()} b}}"',
            lambda: f"${{{self.name()}:+set}}",
            lambda: f"${{{self.name()}//./}}",
            lambda: f"x${self.name()}'y'\"z\"",
            lambda: f'"a\\"b\\$c {self.word()}"',
            lambda: f"${{{self.name()}-}}",
            lambda: f"${{{self.name()}%a}}",
        )

    def probe(self) -> str:
        self._probes += 1
        words = " ".join(self.value() for _ in range(self._random.randint(0, 3)))
        return f"probe {self._probes} {words}".rstrip()

    def command(self) -> str:
        return self._any(
            self.probe,
            self.probe,
            lambda: f"{self.name()}={self.value()} {self.probe()}",
            lambda: f"{self.name()}+={self.value()} {self.name()}={self.value()} {self.probe()}",
            lambda: f"env {self.name()}=12.0 {self.probe()}",
            lambda: f'env -u PROBE_OTHER {self.name()}="x${self.name()}" {self.probe()}',
            lambda: f"bash -ec 'probe {self._next()} \"${self.name()}\"'",
            lambda: f'sh -c "{self.name()}=7 probe {self._next()} x"',
            lambda: f"{self.probe()} >/dev/null 2>&1",
            lambda: f"nice {self.probe()}",
            lambda: f"{self.probe()} | cat",
            lambda: f"{self.name()}=$({self.probe()})",
        )

    def _next(self) -> int:
        self._probes += 1
        return self._probes

    def says(self) -> str:
        """Print, comment or quote what looks like a setting."""
        return self._any(
            lambda: f'echo "export {self.name()}={self.word()}" >/dev/null',
            lambda: f": # {self.name()}={self.word()}",
            lambda: f"printf '%s\\n' '{self.name()}=12.1a' >/dev/null",
            lambda: f"cat >/dev/null <<EOF\nexport {self.name()}=12.0\nprobe 999 ${self.name()}\nEOF",
            lambda: f"cat >/dev/null <<'EOF'\nexport {self.name()}=12.0\nEOF",
            lambda: f': "{self.name()}=12.0"',
        )

    def test(self) -> str:
        return self._any(
            lambda: f'[ -z "${self.name()}" ]',
            lambda: f'[ -n "${{{self.name()}:-}}" ]',
            lambda: f'[ "${self.name()}" = {self._random.choice(("12.0", "on", "x"))} ]',
            lambda: f"[[ ${self.name()} == 12* ]]",
            lambda: f'[[ -z "${self.name()}" || "${self.name()}" == "120" ]]',
            lambda: f"[[ -n ${self.name()} && ${self.name()} != x ]]",
            lambda: f'! [ "${self.name()}" = "" ]',
            lambda: f'test -n "${self.name()}"',
            lambda: "true",
            lambda: "false",
            lambda: f"[ -e /nowhere-{self.word()[:2]} ]",
            lambda: f"[[ ${self.name()} =~ ^12 ]]",
        )

    def block(self, most: int = 3) -> str:
        self._depth += 1
        body = "\n".join(self.statement() for _ in range(self._random.randint(1, most)))
        self._depth -= 1
        return body

    def assignment(self) -> str:
        return self._any(
            lambda: f"{self.name()}={self.value()}",
            lambda: f"export {self.name()}={self.value()}",
            lambda: f"export {self.name()}={self.value()} {self.name()}={self.value()}",
            lambda: f"{self.name()}+={self.value()}",
            lambda: f"export {self.name()}",
            lambda: f"declare -x {self.name()}={self.value()}",
            lambda: f"unset {self.name()}",
            lambda: f': "${{{self.name()}:={self.word()}}}"',
            lambda: f"{self.name()}={self.value()} {self.name()}={self.value()}",
            lambda: f"set -a; {self.name()}={self.value()}; set +a",
            lambda: f"export -n {self.name()}",
        )

    def compound(self) -> str:
        if self._depth > 2:
            return self.assignment()
        return self._any(
            lambda: f"if {self.test()}; then\n{self.block()}\nfi",
            lambda: f"if {self.test()}; then\n{self.block()}\nelse\n{self.block()}\nfi",
            lambda: (
                f"if {self.test()}; then {self.assignment()}; elif {self.test()}; then\n"
                f"{self.block()}\nelse\n{self.block()}\nfi"
            ),
            lambda: f"for {self.name()} in 90 12.0 {self.value()}; do\n{self.block(2)}\ndone",
            lambda: (
                f'case "${self.name()}" in\n12.0|120) {self.assignment()};;\n12*)\n'
                f"{self.block(2)}\n;;\n*) {self.command()};;\nesac"
            ),
            lambda: f"(\n{self.block(2)}\n)",
            lambda: f"{{ {self.assignment()}; {self.command()}; }}",
            lambda: f"f{self._depth}() {{\nlocal ONE=$1\n{self.block(2)}\n}}\nf{self._depth} {self.value()}",
            lambda: (
                f"a=({self.value()} {self.value()}); a+=({self.value()})\n"
                f'probe {self._next()} "${{a[@]}}"\nprobe {self._next()} ${{a[@]}}'
            ),
            lambda: (
                f"bash <<'EOF'\n{self.assignment()}\n{self.command()}\nEOF" if self._depth == 0 else self.assignment()
            ),
            lambda: f"while read -r {self.name()}; do {self.command()}; done </dev/null",
            lambda: f"eval '{self.name()}=12.0'",
        )

    def statement(self) -> str:
        return self._any(
            self.assignment,
            self.assignment,
            self.command,
            self.command,
            self.says,
            self.compound,
            lambda: f"{self.test()} && {self.assignment()}",
            lambda: f"{self.test()} || {self.assignment()}",
            lambda: f"{self.assignment()} && {self.command()}",
            lambda: f"{self.command()} || {self.assignment()}",
            lambda: f"{self.command()} && {self.assignment()} && {self.command()} \\\n  && {self.command()}",
            lambda: f"{self.assignment()}; {self.command()} # {self.name()}=1",
        )


Runs = dict[str, list[tuple[list[str], dict[str, str]]]]


def by_bash(probe: Path, folder: Path, scripts: Mapping[int, str]) -> dict[int, Runs]:
    """What the probes of each script got, by their number, in an environment without the variables."""
    for number, text in scripts.items():
        (folder / f"{number}.sh").write_text(text)
        (folder / f"{number}.log").write_text("")
    driver = 'for number; do export PROBE_LOG="$number.log"; (. "./$number.sh"); done'
    command = ["bash", "-c", driver, "bash", *map(str, scripts)]
    environment = {"PATH": f"{probe.parent}:/usr/bin:/bin"}
    nothing = subprocess.DEVNULL
    subprocess.run(command, env=environment, cwd=folder, stdin=nothing, stderr=nothing, timeout=300, check=False)
    return {number: recorded(folder / f"{number}.log") for number in scripts}


def recorded(log: Path) -> Runs:
    runs: Runs = {}
    for record in log.read_text().split("\x1d")[:-1]:
        words, environment = (part.split("\x1f")[:-1] for part in record.split("\x1e"))
        runs.setdefault(words[0], []).append((words[1:], dict(one.split("=", 1) for one in environment)))
    return runs


def disagreement(command: Command, words: list[str], environment: dict[str, str], seen: Counter[str]) -> str:
    """Return how a command that was read differs from one that ran; empty if it does in nothing that is known."""
    for at, word in enumerate(command.words[2:]):
        if word.unknown:
            seen["unknown"] += 1
            break  # it may be several words, or none
        seen["known"] += 1
        if at >= len(words) or words[at] != word.text:
            return f"word {at + 1} is {words[at : at + 1]}, and not {word.text!r}"
    else:
        if len(words) != len(command.words) - 2:
            return f"it got {words}"
    for name in NAMES:
        variable = command.environment.get(name)
        if variable and (variable.value.unknown or variable.condition):
            seen["unknown"] += 1
        else:
            seen["known"] += 1
            if environment.get(name) != (variable.value.text if variable else None):
                return f"{name} is {environment.get(name)!r}, and not {variable.value.text if variable else None!r}"
    return ""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that writes down what it is given."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text(PROBE)
    subprocess.run(["g++", "-o", folder / "probe", "-x", "c", folder / "probe.c"], check=True)
    return folder / "probe"


def test_each_command_gets_what_bash_gives_it(probe: Path, tmp_path: Path) -> None:
    begin = FIRST
    seen: Counter[str] = Counter()
    scripts = {number: Scripts(number).text() for number in range(begin, begin + SCRIPTS)}
    for number, runs in by_bash(probe, tmp_path, scripts).items():
        text = scripts[number]
        read = shell.read(text)
        commands: dict[str, list[Command]] = {}
        for command in read.commands:
            if command.program == "probe":
                commands.setdefault(command.words[1].text, []).append(command)
        where = f"script {number}:\n{text}"
        for key, ran in runs.items():
            assert commands.get(key) or read.unread, f"{where}\nprobe {key} is not read"
            mine = commands.get(key, [])
            if read.unread or any(command.condition for command in mine):
                seen["conditional"] += 1
                continue
            assert len(mine) == len(ran), f"{where}\nprobe {key} ran {len(ran)} times, and not {len(mine)}"
            for command, (words, environment) in zip(mine, ran, strict=True):
                wrong = disagreement(command, words, environment, seen)
                assert not wrong, f"{where}\nprobe {key}: {wrong}"
        for key, mine in commands.items():
            never = not read.unread and all(not command.condition for command in mine)
            assert not never or key in runs, f"{where}\nprobe {key} did not run"
    assert seen["known"] > 3 * seen["unknown"], seen


def test_the_environment_of_this_process_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "LIST", "9.0")
    (command,) = shell.read("export LIST=${LIST:-12.1a}\nmake\n").commands
    assert command.environment["LIST"].value.text == "12.1a"


SCOPES = """
f() { LIST=1; declare -x LIST=2; probe 1; LIST=3; }
f; probe 2 "$LIST"
export MODE=x
g() { local MODE; probe 3 "${MODE-unset}"; typeset MODE=3; probe 4; declare -gx ONE=7; }
g; probe 5 "$MODE"
h() { export FLAGS=5; typeset -x FLAGS; FLAGS=6; }
h; probe 6 "$FLAGS"
k() { ( declare ARCHS=9 ); ARCHS=8; if [ -e /nowhere ]; then declare ARCHS=7; fi; ARCHS=6; }
k; probe 7 "$ARCHS"
"""


def agrees(probe: Path, folder: Path, script: str) -> Counter[str]:
    """Compare what was read of one script with what bash did; return how much of it was known."""
    seen: Counter[str] = Counter()
    commands = {one.words[1].text: one for one in shell.read(script).commands if one.program == "probe"}
    (runs,) = by_bash(probe, folder, {0: script}).values()
    for key, ran in runs.items():
        assert key in commands, key
        if commands[key].condition:
            seen["conditional"] += 1
            continue
        wrong = disagreement(commands[key], *ran[0], seen)
        assert not wrong, f"probe {key}: {wrong}"
    for key, command in commands.items():
        assert command.condition or key in runs, f"probe {key} did not run"
    return seen


def test_what_a_function_declares_is_its_own_from_there_on(probe: Path, tmp_path: Path) -> None:
    seen = agrees(probe, tmp_path, SCOPES)
    assert not seen["conditional"]
    assert seen["unknown"] < 6, seen


NOTHING = """
export MODE=x LIST=a ARCHS=b
while read -r MODE; do probe 1; LIST=c; done </dev/null
probe 2
read ARCHS < /dev/null; probe 3 "$ARCHS"
if read -r ONE; then probe 4; fi </dev/null
FLAGS=y; while read -r FLAGS; do probe 5; done <<< "one"; probe 6 "$FLAGS"
cat </dev/null | while read -r MODE; do probe 7; done
while false; do LIST=d; done; probe 8 "$LIST"
until true; do LIST=e; done; probe 9 "$LIST"
{ read -r ONE <<< two; probe 10 "$ONE"; } </dev/null
"""


def test_the_test_of_a_loop_runs_and_a_read_of_nothing_leaves_nothing(probe: Path, tmp_path: Path) -> None:
    seen = agrees(probe, tmp_path, NOTHING)
    assert seen["conditional"] == 1, seen
    assert seen["known"] > 3 * seen["unknown"], seen


RETURNS = """
export LIST=a MODE=m
f() { if [ -e /nowhere-1 ]; then LIST=b; return; fi; probe 1; MODE=n; probe 2; }
f; probe 3
g() { [ -e /nowhere-2 ] || return; probe 4; LIST=c; }
g; probe 5 "$LIST"
h() { if [ -e /nowhere-3 ]; then return 0; else return 1; fi; probe 6; }
h; probe 7
k() { for ONE in $(ls /); do return; done; probe 8; ARCHS=x; }
k; probe 9 "$ARCHS"
l() { if [ -e /nowhere-4 ]; then if [ -e /x ]; then return; fi; fi; export FLAGS=x; }
l; probe 10
m() { FLAGS=y; return; }
m; probe 11 "$FLAGS"
"""


def test_what_follows_a_return_that_perhaps_runs_is_conditional(probe: Path, tmp_path: Path) -> None:
    agrees(probe, tmp_path, RETURNS)
    commands = {one.words[1].text: one for one in shell.read(RETURNS).commands}
    assert {key for key, one in commands.items() if one.condition} == {"1", "2", "4", "8"}
    assert commands["5"].words[2].unknown
    assert commands["11"].words[2].text == "y"


def test_a_condition_grows_by_one_part_for_each_return() -> None:
    returns = "".join(f"  if [ -e /nowhere-{number} ]; then return; fi\n" for number in range(60))
    (probe,) = shell.read(f"f() {{\n{returns}  probe 1\n}}\nf\n").commands
    assert probe.condition.count("no return under") == 60
    assert len(probe.condition) < 60 * 80


GROUPS = """
export LIST=a MODE=
if [[ -z "$LIST" || ( "$LIST" != b && "$MODE" != b* ) ]]; then probe 1; else probe 2; fi
if [[ ( -n "$MODE" ) && -n "$LIST" ]]; then probe 3; fi
if [[ ! ( -n "$MODE" || $LIST == b ) ]]; then probe 4; fi
if [ "$LIST" ]; then probe 5; fi
if [ "$MODE" ]; then probe 6; fi
if [[ $LIST ]]; then probe 7; fi
"""


def test_a_test_has_groups_and_words_alone(probe: Path, tmp_path: Path) -> None:
    seen = agrees(probe, tmp_path, GROUPS)
    assert seen["conditional"] <= 1, seen


DAMAGED = (
    "probe 990 )",
    "fi",
    "then",
    "done",
    "esac",
    "}",
    "else",
    ";; x",
    "& x",
    "{{ macro }}",
    "MODE=${ONE@@}",
    "coproc cat",
    "time { :; }",
    "if [ x ) ]; then",
    "echo 'open",
    'echo "open',
    "cat <<EOF )",
    "(",
    "{",
    "case x in",
    "for x in a b; do",
    "while false; do",
    "f() {{",
    "a=(1 2",
    "a=(1 )2)",
    "echo $(",
    "export LIST=12.0 )",
    "probe 991 \\\n ) x",
    "@@MACRO@@ (x)",
    "<<<<<<< HEAD",
    "=======",
    "{% if x %}",
    "export MODE=`",
    "set -a )",
    "true &&",
    "|| true",
    "select x",
    "[[ a == ) ]]",
    "if true; then fi",
    "f() ( )",
)
"""Lines that bash refuses, or that its grammar for tree-sitter does not have."""
ENDS = (" )", " fi", " ;;", " (", "; fi", " }", " {", " ${", '"', "'", " `")


def damaged(number: int) -> str:
    """Return a script to which a line is added anywhere, or the end of a line."""
    lines = Scripts(FIRST + number % SCRIPTS).text().split("\n")[:-1]
    chosen = random.Random(number)
    at = chosen.randrange(len(lines))
    if chosen.random() < 0.5:
        lines.insert(at, chosen.choice(DAMAGED))
    else:
        lines[at] += chosen.choice(ENDS)
    return "\n".join(lines) + "\n"


def test_what_stands_before_damaged_lines_is_certain_and_what_follows_is_not(probe: Path, tmp_path: Path) -> None:
    scripts = {number: damaged(number) for number in range(FIRST_DAMAGED, FIRST_DAMAGED + SCRIPTS)}
    seen: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for number, runs in by_bash(probe, tmp_path, scripts).items():
        read = shell.read(scripts[number])
        if any("grammar" not in why for _, why in read.unread):
            continue  # of another reason: `set -a` under a condition
        where = f"script {number}:\n{scripts[number]}{read.unread}"
        commands: dict[str, list[Command]] = {}
        for command in read.commands:
            if command.program == "probe":
                commands.setdefault(command.words[1].text, []).append(command)
        for key, ran in runs.items():
            mine = commands.get(key, [])
            assert mine or read.unread, f"{where}\nprobe {key} is not read"
            if not mine or any(command.condition for command in mine):
                seen["declared"] += 1
                continue
            assert len(mine) == len(ran), f"{where}\nprobe {key} ran {len(ran)} times, and not {len(mine)}"
            for command, (words, environment) in zip(mine, ran, strict=True):
                wrong = disagreement(command, words, environment, known)
                assert not wrong, f"{where}\nprobe {key}: {wrong}"
                seen["certain"] += 1
        for key, mine in commands.items():
            assert key in runs or any(command.condition for command in mine), f"{where}\nprobe {key} did not run"
        seen["damaged"] += bool(read.unread)
    assert seen["damaged"] > SCRIPTS / 2, seen
    assert seen["certain"] > 3 * seen["declared"], seen


def test_what_follows_a_line_that_is_not_read_is_read_under_a_condition() -> None:
    lines = ("export LIST=12.0", "make", "{{ macro LIST }}", "ONE=12.1a", 'make $ONE "$LIST"', "export FLAGS=$ONE")
    read = shell.read("\n".join(lines))
    first, second = read.commands
    assert first.environment["LIST"].value.known == "12.0"
    assert not first.condition
    assert read.unread == [(3, "line 3 not read: the grammar of bash does not have it so")]
    assert second.words[1].known == "12.1a"
    assert second.words[2].known is None  # the line can set it
    assert second.condition == "what is in line 3"
    assert [(one.name, one.condition) for one in read.readings] == [("LIST", ""), ("FLAGS", "what is in line 3")]


@pytest.mark.parametrize(
    ("script", "unread"),
    [
        ("make\nif a ); then\n  make LIST=1\nfi\nmake ONE=1\n", "lines 2-4"),
        ("make\nif a; then\n  make LIST=1\n", "lines 2-3"),
        ("make\ncat <<EOF )\nmake LIST=1\nEOF\n", "lines 2-5"),
        ("make\necho 'open\nmake LIST=1\n", "lines 2-4"),
        ("make\nf() {\n  x )\n  make ONE=1\n}\nf\n", "line 3"),
        ("make\nmake LIST=1 && \\\n  x )\nmake ONE=1\n", "lines 2-3"),
        ("make; make ONE=1; x )\nmake ONE=1", "line 1"),
    ],
)
def test_a_construct_whose_head_or_end_is_damaged_is_not_read(script: str, unread: str) -> None:
    read = shell.read(script)
    assert [why.partition(" not")[0] for _, why in read.unread] == [unread]
    texts = [" ".join(word.text for word in command.words) for command in read.commands]
    assert "make LIST=1" not in texts
    assert all(command.condition for command in read.commands if len(command.words) > 1)


def test_what_never_runs_is_not_named_as_unread() -> None:
    assert not shell.read("make\nexit 0\n\x01\x02 ) ( binary\n").unread


def test_a_word_behind_a_redirection_is_the_commands(probe: Path, tmp_path: Path) -> None:
    agrees(probe, tmp_path, "probe >/dev/null 1 a 2>&1 b\nprobe <<'EOF' 2 c\nx\nEOF\n")


def test_hostile_text_ends() -> None:
    for text in (
        "(" * 300,
        "if x; then\n" * 300,
        ")\n" * 400,
        '"\n' * 301,
        "\\\n" * 200,
        "case x in\n" * 200,
        "`" * 99,
    ):
        assert shell.read(f"make\n{text}").unread or text.startswith("\\")
