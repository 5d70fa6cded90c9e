"""Texts as tokens, whole and in part."""

import tokenize
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.cxx.tokens import lex
from fp4patch.edits import cmake
from fp4patch.stack.stream import heading_name, stream

LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}


@pytest.mark.parametrize("version", ["0.33.0"])
def test_a_whole_tree_reads_as_the_readers_of_its_languages_do(
    version: str, pristine_tree: Callable[[str, str], Path]
) -> None:
    tree = pristine_tree("vllm", version)
    counts = {"c++": 0, "python": 0, "cmake": 0}
    for path in sorted([*tree.rglob("*.py")][::40] + [*tree.rglob("*.cuh")][::4] + [*tree.rglob("CMakeLists.txt")]):
        text = path.read_text(encoding="utf-8")
        found = stream(text, path.name)
        assert len(found.words) == len(found.lines)
        assert sum(map(len, found.statements)) == len(found.words)
        if path.suffix == ".py":
            tokens = [t for t in tokenize.generate_tokens(StringIO(text).readline) if t.type not in LAYOUT]
            # The text of a string over several lines has no indentation there.
            assert [w for w in found.words if "\n" not in w] == [t.string for t in tokens if "\n" not in t.string]
            counts["python"] += len(tokens)
        elif path.suffix == ".cuh":
            assert found.words == lex(text).words
            counts["c++"] += len(found.words)
        else:
            arguments = sum(len(command.arguments) + 3 for command in cmake.parse(text).commands)
            # Each command has its name and two parentheses beside its arguments.
            assert len(found.words) == arguments
            counts["cmake"] += arguments
    assert min(counts.values()) > 500, counts


@given(
    st.text(alphabet="ab(){};#\"'/*\\\n \tdef:,1", max_size=60), st.sampled_from(["a.cu", "a.py", "a.cmake", "a.md"])
)
def test_any_text_can_be_read(text: str, path: str) -> None:
    found = stream(text, path)
    assert len(found.words) == len(found.lines)
    for at, word in enumerate(found.words):
        assert at in found.find((word,))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("void first(int n) {", "first"),
        ("template <int N> struct Vector {", "Vector"),
        ("class Runner(nn.Module):", "Runner"),
        ("    def forward(self, x):", "forward"),
        ("namespace cutlass {", "cutlass"),
        ("public:", "public:"),
        ("", ""),
    ],
)
def test_a_heading_has_a_name(line: str, name: str) -> None:
    assert heading_name(line) == name


def test_functions_of_classes_and_behind_conditionals_have_their_spans() -> None:
    found = stream(
        "struct S {\n#if A\n  void f() {\n#else\n  void f(int) {\n#endif\n    g();\n  }\n};\nint h() { }\n", "a.cu"
    )
    assert [function.name for function in found.functions] == ["f", "h"]
    (call,) = found.find(("g", "("))
    function = found.function_at(call)
    assert function
    assert function.name == "f"
    assert found.function_at(0) is None
