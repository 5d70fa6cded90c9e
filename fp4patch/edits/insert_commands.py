"""The edit ``insert-commands``: a template of CMake commands on lines of its own, behind a command."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from fp4patch.core.outcome import NothingToDo, Outcome
from fp4patch.core.table import SomeText, TemplateBeside
from fp4patch.edits.cmake import Script, parse, read_command
from fp4patch.edits.cmake_edit import edit_cmake, proven
from fp4patch.edits.operation import NO_OPTIONS, BySearch, MayBeAbsent, Retired, Template
from fp4patch.edits.refusal import ADDED, Refusal


@dataclass(frozen=True, kw_only=True)
class InsertCommands(MayBeAbsent, BySearch):
    """Insert a template of CMake commands after the one command ``after`` in the body of a CMake function.

    The edit does not apply to a file without such a function: it is not needed, and ``otherwise`` gives the reason. An
    empty ``function`` is the whole file, and the edit then does not apply to a file without ``after``. The ``tokens``
    of ``retired`` are a command in that body.
    """

    subject: ClassVar = "function"
    op: Literal["insert-commands"] = "insert-commands"
    function: str = ""
    """Name of the CMake function. Empty: the whole file."""
    after: SomeText
    """Command behind which the template is put."""
    template: TemplateBeside
    """File beside patch.toml with the commands to insert."""
    retired: tuple[Retired, ...] = ()
    """Texts that show that the edit has nothing to do."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys with code."""
        return ("after",)

    def rewrite(self, text: str, template: Template, _options: Mapping[str, str] = NO_OPTIONS, /) -> Outcome:
        """Return the text with the template on lines of its own behind the line on which the command ``after`` ends."""
        return edit_cmake(text, self.otherwise, partial(_insert_commands, self, template))


def _insert_commands(edit: InsertCommands, template: Template, script: Script) -> Outcome | None:
    wanted = read_command(edit.after)
    bodies = script.bodies(edit.function) if edit.function else [script.commands]
    where = edit.function or "the file"
    if not bodies or (not edit.function and wanted.meaning not in script.meaning):
        return None
    if len(bodies) != 1:
        raise Refusal(f"one definition of {edit.function}", f"{len(bodies)}")
    live = {id(script.commands[at]) for at in script.live}
    body = [command for command in bodies[0] if id(command) in live]
    there = {command.meaning for command in body}
    for rule in edit.retired:
        if read_command(rule.tokens).meaning in there:
            return NothingToDo(rule.state, rule.because, rule.since)
    sites = [command for command in body if command.meaning == wanted.meaning]
    if len(sites) != 1:
        line = sites[-1].line if sites else None
        raise Refusal(f"1 `{edit.after}` in {where}", f"{len(sites)}", line)
    text, end = script.text, script.text.find("\n", sites[0].end)
    if end < 0 or text[sites[0].end : end].partition("#")[0].strip():
        raise Refusal(f"`{edit.after}` at the end of its line", "more on it", sites[0].line)
    newline = "\r\n" if text[end - 1] == "\r" else "\n"
    added = template(edit.template).replace("\r\n", "\n").rstrip("\n") + "\n"
    number = script.commands.index(sites[0]) + 1
    new = parse(added).meaning
    if script.meaning[number : number + len(new)] == new:
        expected = f"`{edit.after}` without {edit.template} behind it"
        raise Refusal(expected, "it is there already", sites[0].line, advice=ADDED)
    text = text[: end + 1] + added.replace("\n", newline) + text[end + 1 :]
    meaning = [*script.meaning[:number], *new, *script.meaning[number:]]
    return proven(text, meaning, [script.line(sites[0].end)])
