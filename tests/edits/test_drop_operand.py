"""The edit `drop-operand`: what leaves a condition, what stays, and every way in which it refuses."""

from __future__ import annotations

import re

import pytest
from cxx_edits import BOTH, DROP, block, done, refusal, template
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.outcome import NothingToDo, Rewritten
from fp4patch.core.state import State
from fp4patch.edits import DropOperand
from fp4patch.edits.cxx import lex


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(defined(A) || defined(SM_A))", "(defined(A))"),
        ("defined A || defined SM_A", "defined A"),
        ("defined(SM_A)||defined(A)", "defined(A)"),
        ("((defined(A) || defined(SM_A) || defined(B)))", "((defined(A) || defined(B)))"),
        ("(defined(A) ||\\\n     defined(SM_A))", "(defined(A))"),
        ("(defined(A) || defined(SM_A) ||\\\n     defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(A) ||\\\n     defined(SM_A) || defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(A) ||\\\n     defined(SM_A) ||\\\n     defined(B))", "(defined(A) ||\\\n     defined(B))"),
        ("(defined(SM_A) ||\\\n     defined(A))", "(defined(A))"),
        ("(\\\n    defined(SM_A) ||\\\n    defined(A))", "(\\\n    defined(A))"),
        ("(defined(A) || defined(SM_A)\\\n    )", "(defined(A)\\\n    )"),
        ("(defined(A) ||\\\n     defined(SM_A)\\\n    )", "(defined(A)\\\n    )"),
        ("defined(A) \\\n  || defined(SM_A) \\\n  || defined(B)", "defined(A) \\\n  || defined(B)"),
        ("defined(A) \\\n  || defined(SM_A)", "defined(A)"),
        ("defined(A) /* a */ || /* gone */ defined(SM_A) /* b */", "defined(A) /* b */"),
        ("defined(SM_A) || /* a */ defined(A) // why", "/* a */ defined(A) // why"),
    ],
)  # fmt: skip
def test_an_operand_leaves_as_if_it_had_never_been_written(before: str, after: str) -> None:
    assert done(DROP, block(before)) == block(after)
    crlf = block(before).replace("\n", "\r\n")
    assert done(DROP, crlf) == block(after).replace("\n", "\r\n")


def test_each_condition_loses_its_own_operand_and_elif_counts() -> None:
    text = "#if defined(SM_A) || defined(A)\n#define ON\n#elif defined(A) || defined(SM_F)\n# define ON 1\n#endif"
    assert done(BOTH, text) == "#if defined(A)\n#define ON\n#elif defined(A)\n# define ON 1\n#endif"


def test_says_which_lines_it_touched() -> None:
    text = "\n" + block("defined(A) || defined(SM_A)") + block("defined(A) || \\\n defined(SM_F)")
    outcome = BOTH.rewrite(text, template)
    assert isinstance(outcome, Rewritten)
    assert outcome.lines == (2, 5, 6)


def test_lists_that_define_something_else_are_left_alone() -> None:
    twin = "#if defined(A) || defined(SM_A)\n#define OTHER ON\n#if 1\n#define ON\n#endif\n#endif\n"
    edited = done(DROP, twin.replace("#if 1\n#define ON\n#endif\n", "") + block("defined(A) || defined(SM_A)"))
    assert edited.startswith("#if defined(A) || defined(SM_A)\n#define OTHER ON\n#endif\n")
    assert refusal(DROP, twin).line == 3, "a nested definition belongs to the inner condition"


@pytest.mark.parametrize("edit", [DROP, BOTH])
@pytest.mark.parametrize("count", [1, 2])
def test_a_release_that_never_had_the_operand_has_nothing_to_do(edit: DropOperand, count: int) -> None:
    outcome = edit.rewrite(block("(defined(A) || defined(B))") * count, template)
    assert isinstance(outcome, NothingToDo)
    assert outcome.state is State.NOT_NEEDED
    assert "do not name SM_A or SM_F" in outcome.because


@pytest.mark.parametrize(
    ("text", "found", "line"),
    [
        ("int x = ON;\n", "none", 1),
        ("int x;\n", "none", None),
        (block("defined(A) || defined(SM_A)"), "1", 1),
        (block("defined(A) || defined(SM_A)") * 3, "3", 7),
        (block("defined(A) || defined(SM_A)") + block("defined(A)"), "none of them", 4),
        (block("defined(A) || defined(SM_A) || defined(SM_F)") * 2, "SM_A, SM_F", 1),
        (block("defined(A) || defined(SM_A) || defined(SM_A)") * 2, "SM_A, SM_A", 1),
        (block("defined(SM_A)") * 2, "SM_A alone", 1),
        (block("defined(A) || \\\n defined(SM_A) && B") * 2, "`&`", 2),
        (block("!defined(SM_A)") * 2, "`!`", 1),
        (block("defined(A) || SM_A > 1") * 2, "`SM_A`", 1),
        (block("defined(A) | defined(SM_A)") * 2, "`|`", 1),
        (block("(defined(A)) || (defined(SM_A))") * 2, "`)`", 1),
        (block("defined(A) || defined(SM_A") * 2, "its end", 1),
        (block("defined(A) ||") * 2, "its end", 1),
        (block("defined(3)") * 2, "`3`", 1),
        (block("SM_A", "#ifdef") * 2, "#ifdef", 1),
        ("#if A\n#else\n#define ON\n#endif\n", "#else", 2),
        (block("defined(A) || defined(SM_B)") * 2, "SM_B", 1),
        (block("defined(A) || defined(SM_A)") * 2 + "/*", "a /* comment that never ends", 7),
        (block("defined(A) || defined(SM_A)") + "#if X\n", "#if without an #endif", 4),
    ],
)
def test_refuses_a_shape_that_it_does_not_know(text: str, found: str, line: int | None) -> None:
    drift = refusal(BOTH, text)
    assert (drift.found, drift.line) == (found, line)


def test_a_name_that_only_looks_like_the_operand_is_named_as_the_nearest() -> None:
    assert refusal(DROP, block("defined(A) || defined(SM_B)")).nearest == "SM_B"


NAMES = st.lists(st.from_regex(r"[A-R][A-Z0-9_]{0,6}", fullmatch=True), min_size=1, max_size=6, unique=True)
GAP = st.sampled_from(["", " ", "  ", "\\\n", " \\\n    ", "\\\r\n\t", " /* c */ ", "\t", "/* \\\n */"])


@st.composite
def disjunctions(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    """Generate a condition that has SM_A among other names, those names, and whether it is in parentheses."""
    others = draw(NAMES)
    names = list(others)
    names.insert(draw(st.integers(0, len(others))), "SM_A")
    parts = []
    for name in names:
        bracketed = f"defined{draw(GAP)}({draw(GAP)}{name}{draw(GAP)})"
        parts.append(draw(st.sampled_from([bracketed, f"defined {name}"])))
    text = parts[0]
    for part in parts[1:]:
        text += f"{draw(GAP)}||{draw(GAP)}{part}"
    wrapped = draw(st.booleans())
    return (f"({draw(GAP)}{text}{draw(GAP)})" if wrapped else text), others, wrapped


@given(disjunctions(), st.booleans())
def test_the_other_operands_stay_in_their_order_whatever_the_layout(
    case: tuple[str, list[str], bool], crlf: bool
) -> None:
    condition, others, wrapped = case
    text = "int a;\n" + block(condition) + "int b;"
    text = re.sub("\r?\n", "\r\n", text) if crlf else text
    result = lex(done(DROP, text))
    (conditional,) = result.conditionals
    left = [token.text for token in conditional.branches[0].condition]
    assert [name for name in left if name not in ("defined", "(", ")", "|")] == others
    assert left.count("defined") == len(others)
    assert left.count("|") == 2 * (len(others) - 1)
    assert (left[0] == "(") == wrapped
    assert result.text.startswith(text[: text.index("#")])
    assert result.text.endswith(text[text.index("#  define") :])
    if crlf:
        assert "\n" not in result.text.replace("\r\n", "")
