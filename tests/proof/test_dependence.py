"""What patched text depends on is found, unless a check varies it."""

from pathlib import Path

import pytest
from verified import TARGET

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.core.arch import Arch
from fp4patch.proof.conditions import Cut
from fp4patch.proof.dependence import dependencies

HEADER = "include/lib.h"
SETUP = "setup.py"
LISTS = "CMakeLists.txt"
SEEN = (Arch(10, 0), Arch(10, 0, "a"), Arch(12, 0), Arch(12, 0, "a"), Arch(12, 1, "a"))


def problems(
    root: Path,
    path: str,
    before: str,
    after: str,
    *cuts: Cut,
    defines: dict[str, str | int] | None = None,
    seen: tuple[Arch, ...] = SEEN,
) -> list[str]:
    """Return place and finding of each dependence of one patched file."""
    own = Probe(
        name="scale",
        title="scale",
        source="probe.cu",
        kind=ProbeKind.SASS,
        patch="lib/guard",
        defines=defines or {},
    )
    texts = ({path: before.encode()}, {path: after.encode()})
    return [f"{one.file}:{one.line} {one.found}" for one in dependencies(root, TARGET, *texts, [own], seen, cuts)]


CODE = "int scaled();\n"


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (f"#ifdef NDEBUG\n{CODE}#endif\n", "1 `NDEBUG`, which no check varies"),
        (f"{CODE}int c = __COUNTER__;\n", "2 `__COUNTER__`, which no check varies"),
        (f"#if defined(ENABLE_SCALE)\n{CODE}#endif\n", "1 `ENABLE_SCALE`, which no check varies"),
        (f"#pragma pack(1)\n{CODE}", "1 `#pragma pack ( 1 )`"),
        (
            f"#if __CUDA_ARCH__ == 1030\n{CODE}#endif\n",
            "1 `if __CUDA_ARCH__ = = 1030` for sm_103",
        ),
        (f"#define OTHERS 2\n{CODE}", "1 `OTHERS` is defined anew"),
        (f"#undef OTHERS\n{CODE}", "1 `OTHERS` is defined anew"),
    ],
)
def test_what_a_header_depends_on_is_found(tmp_path: Path, after: str, found: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/other.h").write_text("#define OTHERS 1\n")
    assert problems(tmp_path, HEADER, CODE, after) == [f"{HEADER}:{found}"]


@pytest.mark.parametrize(
    "after",
    [
        f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200\n{CODE}#endif\n",  # both targets were compiled
        f"#define FP4PATCH_OWN 1\n{CODE}",
        f"#define OWN 1\n{CODE}",
        f"#pragma once\n{CODE}",
        f"#ifdef LIB_SM120_ON\n{CODE}#endif\n",  # the tree's own, named after a target
        '#if "\n',  # not understood: no line of it counts as judged
    ],
)
def test_what_the_target_and_the_text_decide_is_no_dependence(tmp_path: Path, after: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/other.h").write_text("  #  define LIB_SM120_ON 1\n")
    assert problems(tmp_path, HEADER, CODE, after) == []


def test_a_macro_that_a_probe_defines_is_varied(tmp_path: Path) -> None:
    after = f"#ifdef ENABLE_SCALE\n{CODE}#endif\n"
    assert problems(tmp_path, HEADER, CODE, after, defines={"ENABLE_SCALE": "1"}) == []
    assert len(problems(tmp_path, HEADER, CODE, after, defines={"ENABLE": "1"})) == 1


def test_conditions_on_targets_are_looked_at_where_something_was_compiled(tmp_path: Path) -> None:
    after = f"#if __CUDA_ARCH__ == 1030\n{CODE}#endif\n"
    assert problems(tmp_path, HEADER, CODE, after, seen=()) == []
    assert problems(tmp_path, HEADER, CODE, after, seen=(*SEEN, Arch(10, 3), Arch(10, 3, "a"))) == []


def test_a_variable_of_the_build_is_found_in_cmake(tmp_path: Path) -> None:
    after = "set(OWN 1)\nif(OWN AND FAST)\nset(ARCHS 12.1)\nendif()\n"
    assert problems(tmp_path, LISTS, "set(OWN 1)\n", after) == [f"{LISTS}:2 `FAST`, which no check varies"]


@pytest.mark.parametrize(
    ("shim", "found"),
    [
        ("function(set_property)\nendfunction()\n", []),  # the first line
        ("set(x 1)\n  FUNCTION ( Set_Property name )\n  endfunction()\n", []),
        ("macro(set_property)\nendmacro()\n", []),
        ("if(x)\nendif()\nfunction(set_property)\nendfunction()\n", []),
        ("", ["set_property("]),
        ("#[[\nfunction(set_property)\n]]\n", ["set_property("]),
        ("set(x [[\nfunction(set_property)\n]])\n", ["set_property("]),
        ("if(FALSE)\nfunction(set_property)\nendfunction()\nendif()\n", ["set_property("]),
        ("function(a)\nfunction(set_property)\nendfunction()\nendfunction()\n", ["set_property("]),
        ("\nfunction(set_property_of)\nendfunction()\n", ["set_property("]),
        ("\nfunction(set_property)\nendfunction(", ["set_property("]),  # not CMake
    ],
)
def test_a_command_that_a_condition_defines_is_its_own(tmp_path: Path, shim: str, found: list[str]) -> None:
    file = tmp_path / "shim.cmake"
    file.write_text(shim)
    own = Cut(LISTS, file, (range(1, 9),), (range(1, 9),))
    said = [f"{LISTS}:2 `{name}`, which no check varies" for name in found]
    assert problems(tmp_path, LISTS, "set(OWN 1)\n", "set(OWN 1)\nset_property(TARGET a)\n", own) == said


def test_what_is_added_is_where_it_was_added_and_each_counts(tmp_path: Path) -> None:
    file = tmp_path / "shim.cmake"
    file.write_text("function(set_property)\nendfunction()\n")
    own = Cut(LISTS, file, (range(1, 2),), (range(1, 3),))
    before = "set(OWN 1)\nset_property(TARGET b)\n"
    after = "set(OWN 1)\nset_property(TARGET a)\nset_property(TARGET b)\n"
    assert problems(tmp_path, LISTS, before, after, own) == []
    outside = f"{after}set_property(TARGET c)\n"
    assert problems(tmp_path, LISTS, before, outside, own) == [f"{LISTS}:4 `set_property(`, which no check varies"]
    first = f"set_property(TARGET c)\n{after}"
    own = Cut(LISTS, file, (range(1, 2),), (range(2, 4),))
    assert problems(tmp_path, LISTS, before, first, own) == [f"{LISTS}:1 `set_property(`, which no check varies"]


PYTHON = 'import os\n\n\ndef archs():\n    return ["12.0"]\n\n\ndef other():\n    return []\n'
ASKS = PYTHON.replace('["12.0"]', '["12.0"] if "X" in os.environ.get("CMAKE_ARGS", "") else ["12.1"]')
ASKED = f"{SETUP}:5 `CMAKE_ARGS`, which no check varies"
SHIM = '''"""Archs of a list."""
import sys
from types import SimpleNamespace

LIMIT = "1"


def built(cmake_args=""):
    there = {"os": SimpleNamespace(environ={"CMAKE_ARGS": cmake_args})}
    exec(open(sys.argv[1]).read(), there)
    return there["archs"]()


assert built("-DX=1") != built()
'''


def cut(root: Path, shim: str, lines: range = range(4, 6), *, path: str = SETUP) -> Cut:
    file = root / "shim.py"
    file.write_text(shim)
    return Cut(path, file, (lines,), (lines,))


def test_a_question_that_no_condition_runs_is_found_in_python(tmp_path: Path) -> None:
    assert problems(tmp_path, SETUP, PYTHON, ASKS) == [ASKED]
    assert problems(tmp_path, SETUP, ASKS, ASKS + "\n") == []
    machine = PYTHON.replace('"12.0"', "__import__('platform').machine()")
    assert problems(tmp_path, SETUP, PYTHON, machine) == [
        f"{SETUP}:5 `machine`, which no check varies",
        f"{SETUP}:5 `__import__`, which no check varies",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('built("-DX=1") != built()', 'all(built(given) for given in ("-DX=1", ""))'),
        ('{"CMAKE_ARGS": cmake_args}', "dict(CMAKE_ARGS=cmake_args)"),
        ('{"CMAKE_ARGS": cmake_args}', '{"CMAKE_ARGS": f"-DY=1 {cmake_args}"}'),
        ("there = {", "value = cmake_args * 2\n    there = {"),
    ],
)
def test_a_question_that_a_condition_answers_in_two_ways_is_varied(tmp_path: Path, old: str, new: str) -> None:
    shim = SHIM.replace(old, new, 1)
    assert problems(tmp_path, SETUP, PYTHON, ASKS, cut(tmp_path, shim)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Named, and not varied.
        ('{"CMAKE_ARGS": cmake_args}', '{}, note="CMAKE_ARGS"'),
        ('{"CMAKE_ARGS": cmake_args}', '{}  # not "CMAKE_ARGS"'),
        ("Archs of a list.", "Archs of a list, with 'CMAKE_ARGS'."),
        ('{"CMAKE_ARGS": cmake_args}', '{"CMAKE_ARGS": "-DX=1"}'),
        ('{"CMAKE_ARGS": cmake_args}', '{"CMAKE_ARGS": LIMIT}'),
        ('built("-DX=1") != built()', "built()"),
        ('built("-DX=1") != built()', 'built("") == built("")'),
        ('built("-DX=1") != built()', 'all(built(given) for given in ("-DX=1",))'),
        ('{"CMAKE_ARGS": cmake_args}', '{"OTHER": cmake_args, "CMAKE_ARGS": ""}'),
        ("def built", "def built(:"),
    ],
)
def test_a_name_that_stands_in_a_shim_is_not_varied_by_that(tmp_path: Path, old: str, new: str) -> None:
    shim = SHIM.replace(old, new, 1)
    shim = shim.replace('{"CMAKE_ARGS": cmake_args}', "{}") if old.startswith("Archs") else shim
    assert shim != SHIM
    assert problems(tmp_path, SETUP, PYTHON, ASKS, cut(tmp_path, shim)) == [ASKED]


def test_a_condition_answers_for_the_code_that_it_runs_alone(tmp_path: Path) -> None:
    assert problems(tmp_path, SETUP, PYTHON, ASKS, cut(tmp_path, SHIM, range(8, 10))) == [ASKED]
    assert problems(tmp_path, SETUP, PYTHON, ASKS, cut(tmp_path, SHIM, path="tools/setup.py")) == [ASKED]
    beside = ASKS.replace("return []", 'return os.environ["CMAKE_ARGS"]')
    outside = f"{SETUP}:9 `CMAKE_ARGS`, which no check varies"
    assert problems(tmp_path, SETUP, PYTHON, beside, cut(tmp_path, SHIM)) == [outside]
    moved = PYTHON.replace("return []", 'return os.environ["CMAKE_ARGS"]')
    assert problems(tmp_path, SETUP, ASKS, moved, cut(tmp_path, SHIM)) == [outside]


def test_a_variable_that_is_not_named_is_never_varied(tmp_path: Path) -> None:
    asks = PYTHON.replace('"12.0"', "*os.environ")
    assert problems(tmp_path, SETUP, PYTHON, asks, cut(tmp_path, SHIM)) == [
        f"{SETUP}:5 `environ`, which no check varies"
    ]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (HEADER, "/* no end\n", f"#ifdef NDEBUG\n{CODE}#endif\n"),
        (SETUP, "print 'a'\n", "import os\nlists = os.getenv('ONE')\n"),
        (LISTS, "set(A\n", 'if(EXISTS "/etc/dgx-release")\nendif()\n'),
    ],
)
def test_where_upstreams_text_is_not_understood_all_of_the_new_text_is_new(
    tmp_path: Path, path: str, before: str, after: str
) -> None:
    assert any("which no check varies" in found for found in problems(tmp_path, path, before, after))
