"""CMake as commands: every form of argument, and what is no CMake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.lex_error import LexError
from fp4patch.edits.cmake import Form, parse


def test_a_command_has_a_name_in_lower_case_and_arguments_of_four_forms() -> None:
    (command,) = parse('SET( A "b;c" [=[d ]] e]=] (f) ) # g').commands
    assert command.name == "set"
    assert [(a.form, a.text) for a in command.arguments] == [
        (Form.UNQUOTED, "A"),
        (Form.QUOTED, "b;c"),
        (Form.BRACKET, "d ]] e"),
        (Form.PARENTHESIS, "("),
        (Form.UNQUOTED, "f"),
        (Form.PARENTHESIS, ")"),
    ]


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (r'f("a\"b" c\;d)', [r"a\"b", r"c\;d"]),
        ('f("a\\\nb")', ["a\\\nb"]),
        ('f("a # b")', ["a # b"]),
        ("f(a # b)\n c)", ["a", "c"]),
        ("f(a #[[ b ) ]] c)", ["a", "c"]),
        ('f(-Da="b c")', ['-Da="b c"']),
        ("f($<A:${B}>)", ["$<A:${B}>"]),
        ("f([=[ ]==] ]=])", [" ]==] "]),
        ("f(a[0])", ["a[0]"]),
        ("f()", []),
    ],
)
def test_arguments_are_read_as_cmake_reads_them(written: str, texts: list[str]) -> None:
    (command,) = parse(written).commands
    assert [argument.text for argument in command.arguments] == texts


@pytest.mark.parametrize(
    ("text", "line"),
    [("f(", 1), ("\nf\n()", 2), ("f(a\nb", 1), ('f("a', 1), ("\n\n)", 3), ("f([[a)", 1), ("#[[ a", 1), ("1f()", 1)],
)
def test_text_that_is_not_cmake_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(LexError) as caught:
        parse(text)
    assert caught.value.line == line


ARGUMENT = st.one_of(
    st.from_regex(r"[A-Za-z0-9_.+${}/-]{1,8}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_characters='"\\'), max_size=12).map(lambda text: f'"{text}"'),
    st.text("ab ();#\"'\n[]", max_size=12)
    .filter(lambda t: "]==]" not in t + "]==")
    .map(lambda text: f"[==[{text}]==]"),
)
LAYOUT = st.sampled_from([" ", "\n", "\t", " # a ) comment\n", " #[[ a\n) comment ]] "])


@given(
    st.lists(st.tuples(st.from_regex(r"[A-Za-z_]\w{0,8}", fullmatch=True).filter(str.isascii), st.lists(ARGUMENT))),
    LAYOUT,
)
def test_whatever_is_written_is_read_back(commands: list[tuple[str, list[str]]], layout: str) -> None:
    text = "\n".join(f"{name}({layout.join(arguments)})" for name, arguments in commands)
    read = parse(text).commands
    assert [command.name for command in read] == [name.lower() for name, _ in commands]
    for command, (_, arguments) in zip(read, commands, strict=True):
        widths = {Form.QUOTED: 1, Form.BRACKET: 4, Form.UNQUOTED: 0}
        spans = [(a.start - widths[a.form], a.end + widths[a.form]) for a in command.arguments]
        assert [text[start:end] for start, end in spans] == arguments
