"""The house rules that a test can keep: which way imports go, how fast the command starts, what is never committed."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Set
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import pytest

import fp4patch
from tools.pages import layout
from tools.pages.layout import module_imports

PACKAGE = Path(fp4patch.__file__).parent
ROOT = PACKAGE.parent

# What each part may import at run time, beside itself: the arrows of the architecture.
MAY_IMPORT: dict[str, Set[str]] = {
    "images": {"sources", "catalog", "edits", "cxx", "core"},
    "stack": {"tree", "sources", "catalog", "edits", "cxx", "core"},
    "doctor": {"adapters", "images", "binaries", "tree", "proof", "sources", "catalog", "edits", "cxx", "core"},
    "adapters": {"catalog", "cxx", "core"},
    "binaries": {"sass", "proof", "sources", "catalog", "core"},
    "tree": {"sources", "catalog", "edits", "cxx", "core"},
    "proof": {"adapters", "tree", "sources", "catalog", "edits", "cxx", "reference", "core", "sass"},
    "sources": {"catalog", "core"},
    "catalog": {"edits", "cxx", "core"},
    "edits": {"cxx", "core"},
    "cxx": {"core"},
    "reference": set(),
    "sass": set(),
    "core": set(),
    "cli": {"core", "console"},
    "console": {"core"},
}
MAY_IMPORT["commands"] = MAY_IMPORT.keys() - {"cli"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    assert {name.partition(".")[0] for name in module_imports(path)} - {part, "__version__"} <= MAY_IMPORT[part]


def test_the_tests_of_the_executor_run_without_the_rest() -> None:
    """It is a library of its own; the script that makes its golden files on a GPU, and types of fixtures, are not."""
    tests = sorted((ROOT / "tests/sass").glob("test_*.py"))
    assert tests
    assert {name.partition(".")[0] for path in tests for name in module_imports(path)} == {"sass"}


def test_no_modules_import_each_other() -> None:
    names = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path for path in modules()
    }
    graph = {name: {_module(found, names) for found in module_imports(path)} for name, path in names.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def _module(name: str, modules: Mapping[str, Path]) -> str:
    return name if name in modules else name.rpartition(".")[0]


def test_the_picture_of_the_layout_is_of_these_imports() -> None:
    assert layout.PICTURE.read_text() == layout.picture(), "python -m tools.regenerate layout"


EXAMPLE = "# Example: "


def examples() -> list[tuple[str, re.Pattern[Any], str]]:
    """Return each example above a regular expression, with its place and the expression."""
    found = []
    for path in modules():
        source = path.read_text()
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source) if EXAMPLE in source else ast.Module([], [])):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")):
                continue
            above = list(takewhile(lambda line: line.startswith(EXAMPLE), map(str.strip, lines[node.lineno - 2 :: -1])))
            if above:
                expression = compiled(path, lines[node.lineno - 1], node)
                place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                found += [(place, expression, line.removeprefix(EXAMPLE)) for line in above]
    return found


def compiled(path: Path, line: str, call: ast.Call) -> re.Pattern[Any]:
    """Return the expression of a call: that of a name from its module, another one from its literals."""
    name = line.partition(" = ")[0]
    if name.isidentifier():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        return cast("re.Pattern[Any]", getattr(import_module(module), name))
    pattern, *others = map(ast.unparse, call.args)
    flags = next((one for one in others if re.fullmatch(r"re\.[A-Z]+( \| re\.[A-Z]+)*", one)), "0")
    return re.compile(ast.literal_eval(pattern), eval(flags, {"re": re}))


def test_an_expression_matches_the_examples_above_it() -> None:
    found = examples()
    written = sum(path.read_text().count(EXAMPLE) for path in modules())
    assert len(found) == written > 0, "an example stands directly above the line with its regular expression"
    wrong = []
    for place, expression, text in found:
        example: Any = text.encode().decode("unicode_escape")
        if isinstance(expression.pattern, bytes):
            example = example.encode()
        if not expression.fullmatch(example):
            wrong.append(f"{place}: {text}")
    assert wrong == [], "an expression matches its example as a whole"


# Lines of each part, in all its files. If one grows by more than a twentieth, its line is changed, and says what for.
SIZES = {
    "commands": 4_200,  # plan; export for package managers
    "core": 1_360,  # the sandbox, with a table of system calls
    "catalog": 1_880,  # arguments of launches as tables, the record of releases, the trees below a project; layers
    "cxx": 1_650,  # literals by value, an `if constexpr` of one line, bodies of functions
    "edits": 8_450,  # the reader of patch files; effects; conditions on a GPU, evaluated; statements of C++ and paths
    "tree": 2_590,  # who brought a file; files that come and go; what a lost receipt said; a patched copy
    "proof": 6_250,  # a list of checks; layers; mutants of a condition, conditions of edits that found nothing to do
    "sass": 6_990,  # expressions; products of matrices, warps and blocks as SM12x has them; --run; host programs, races
    "binaries": 3_090,  # an answer is the worst of seven axes; processors, exceptions; remedies, GPUs by their names
    "doctor": 11_010,  # readers of build files, lists, recipes, texts, models; commands in logs; damaged scripts
    "stack": 2_365,  # reading, merging, what a release has already, the plan; files that change their names
    "adapters": 1_290,  # what was evaluated before, from the cache
    "images": 935,  # stacks in the context, the pins and the labels
    "sources": 1_001,  # histories and tags of clones; archives of sources, unpacked with limits
    "reference": 290,  # products of NVFP4 matrices, and blocks as vLLM quantizes them
    "cli": 426,  # with console.py
}


def parts_of(package: Path) -> dict[str, int]:
    """Return the lines of each part of a package; its command line is one part, of several modules."""
    lines = Counter[str]()
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            place = path.relative_to(package)
            part = place.parts[0] if len(place.parts) > 1 else "cli"
            lines[part] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(lines)


def grown(parts: Mapping[str, int]) -> list[str]:
    """Return what to do about each part that has outgrown its line of the table."""
    return [
        f"{part} has {lines:,} lines, over 5 % more than {SIZES.get(part, 0):,}: "
        "change its line in SIZES of tests/test_house.py, and say in it what the new lines are for"
        for part, lines in sorted(parts.items())
        if lines * 20 > SIZES.get(part, 0) * 21
    ]


def test_a_part_that_grows_says_what_for() -> None:
    parts = parts_of(PACKAGE)
    assert grown(parts) == []
    assert SIZES.keys() == parts.keys()


def test_a_part_has_outgrown_its_line_by_more_than_a_twentieth(tmp_path: Path) -> None:
    size = SIZES["core"] * 21 // 20
    (tmp_path / "core").mkdir()
    for lines, expected in ((size, []), (size + 1, ["core has"])):
        (tmp_path / "core/one.py").write_text("\n" * lines)
        assert [said[:8] for said in grown(parts_of(tmp_path))] == expected
    assert [said.partition(" has ")[0] for said in grown({"other": 1})] == ["other"]


TARGET_NAME = re.compile(r"cutlass|vllm|flashinfer|qutlass|mlx|transformer_?engine", re.IGNORECASE)
NAMES_A_TARGET = {
    "adapters": "one file for each target whose build must be run",
    "images": "an image is one of vLLM with CUTLASS",
    "cli.py": "the summary of `build`: the same",
    "commands/build.py": "the same",
    "edits/gpu_condition.py": "macros by which headers name a GPU",
    "doctor/companions.py": "packages beside FlashInfer, whose releases it compares",
    "doctor/inputs.py": "the index of FlashInfer's packages",
    "doctor/machine.py": "a build of vLLM",
    "doctor/projects.py": "CUTLASS's templates in anyone's sources",
    "doctor/log_statements.py": "what a server's log states",
    "doctor/model.py": "which backend vLLM takes for a checkpoint",
    "binaries/encoders.py": "the names of upstream's encoders, as they are reported",
    "commands/fetch.py": "an example in a message",
    "commands/verify.py": "an example in a help text",
}
"""Parts whose code names a target, with the reason. Every other part works on any target by its data."""


def names_in_code(path: Path) -> list[str]:
    """Return identifiers and texts of a module's code that name a target; docstrings and comments do not count."""
    tree = ast.parse(path.read_text())
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in texts:
            found.append(str(node.value))
        found += [
            str(getattr(node, field)) for field in ("id", "attr", "name", "arg", "asname") if hasattr(node, field)
        ]
    return [name for name in found if TARGET_NAME.search(name) and not name.startswith("Example: fp4patch ")]


def test_generic_parts_name_no_target() -> None:
    named = {path.relative_to(PACKAGE).as_posix() for path in modules() if names_in_code(path)}
    excepted = {name for name in named if any(f"{name}/".startswith(f"{part}/") for part in NAMES_A_TARGET)}
    assert named - excepted == set()
    assert [part for part in NAMES_A_TARGET if not any(f"{name}/".startswith(f"{part}/") for name in named)] == []


def test_the_command_starts_in_under_three_tenths_of_a_second() -> None:
    """In processor time: the other workers of a test run make wall time mean nothing."""

    def start() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-m", "fp4patch", "--version"], check=True, capture_output=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(start() for _ in range(5)) < 0.3


CLIENTS = ("requests", "pypi_simple", "docker", "libcst", "git")


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("cli", ("rich", "pydantic", "numpy", "jinja2", *CLIENTS)),
        *((verb, CLIENTS) for verb in ("proof.verify", "doctor.run", "tree.status", "commands.apply")),
    ],
)
def test_the_start_imports_nothing_heavy_and_no_verb_what_it_does_not_use(module: str, heavy: tuple[str, ...]) -> None:
    code = f"import fp4patch.{module}, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_nothing_committed_names_a_machine_path_or_a_registry_host() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    forbidden = re.compile(
        "|".join((r"/wor" + r"k/", r"files\.python" + r"hosted", r"pypi\." + r"org", r"/ro" + r"ot/"))
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png", ".svg"):
            found = forbidden.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{name}: {found}"
