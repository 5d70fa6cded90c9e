"""The data loads, and every mistake in it is reported at once, by file and key."""

import shutil
import tomllib
from pathlib import Path

import pytest
from few_probes import copy_data

from fp4patch.catalog.families import expanded
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import ManifestError, UsageError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return copy_data(tmp_path)


def problems(root: Path) -> list[str]:
    with pytest.raises(ManifestError) as error:
        load(root)
    return [f"{p.file}: {p.nearest}: {p.expected}: {p.found}" for p in error.value.problems]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1))


def test_the_shipped_data_is_valid_and_every_patch_is_in_a_variant() -> None:
    catalog = load()
    used = {f"{t}/{p}" for v in catalog.variants.values() for t, chosen in v.targets.items() for p in chosen.patches}
    assert used == set(catalog.patches)
    assert {"turbo", "turbo2", "next2"} <= set(catalog.variants)


def test_every_mistake_is_reported_at_once_with_file_and_key(data: Path) -> None:
    edit(data / "patches/flashinfer/arch-suffix/patch.toml", "count = 2", 'count = "two"\nsurprise = 1')
    edit(data / "patches/cutlass/e2m1-converter/patch.toml", "applies = ", 'applies = "about 4" # ')
    edit(data / "variants/turbo.toml", "cost = ", "nam = 1\ncost = ")
    found = problems(data)
    for expected in (
        "patches/flashinfer/arch-suffix/patch.toml: edits[0].replace.count: a valid integer",
        "patches/flashinfer/arch-suffix/patch.toml: edits[0].replace.surprise: no key of this name: 1",
        "patches/cutlass/e2m1-converter/patch.toml: applies: a specifier such as",
        "variants/turbo.toml: nam: no key of this name: 1",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)


ENCODE = "patches/cutlass/e2m1-encode/patch.toml"
CONVERTER = "patches/cutlass/e2m1-converter/patch.toml"
GUARD = "patches/cutlass/e2m1-guard/patch.toml"
ASM, SUFFIX = "patches/vllm/e2m1-asm/patch.toml", "patches/flashinfer/arch-suffix/patch.toml"
FAMILY = "patches/vllm/sm120-family/patch.toml"
CUTLASS = "patches/cutlass/target.toml"
VLLM = "patches/vllm/target.toml"
TE = "patches/transformer_engine/target.toml"
COMMON = '["csrc/**/cutlass_extensions/common.hpp"]'


@pytest.mark.parametrize(
    ("file", "old", "new", "key"),
    [
        (ASM, "[[edits]]", "[edits]", "edits: a valid tuple"),
        (CONVERTER, 'op = "insert"', 'op = "sed"', "edits[0]: Input tag 'sed'"),
        (CONVERTER, 'op = "insert"\n', "", "edits[0]: Unable to extract tag"),
        (CONVERTER, 'search = ["inc', 'search = ["../inc', "edits[0].insert.search[0]: a path inside the tree"),
        (SUFFIX, "count = 2", "count = 0", "edits[0].replace.count: greater than 0: 0"),
        (SUFFIX, '"flashinfer/comp', '"flashinfer/**/*.cu", "', "edits[0].search: files of one language"),
        (GUARD, 'VALUES = "{N}" }', "VALUES = 2 }\ninclude = ['stubs']", "probes[1].include[0]: a directory"),
        (FAMILY, f"search = {COMMON}", "search = []", "edits[0].replace.search: Tuple should have at least 1 item"),
        (FAMILY, f"search = {COMMON}", 'search = ["csrc/**.hpp"]', "edits[0].replace.search[0]: `**` as the whole"),
        (FAMILY, 'find = "defined', 'find = "" # "defined', "edits[0].replace.find: some text"),
        (FAMILY, 'since = "0.16"', 'since = "long ago"', "edits[0].replace.retired[0].since: a version"),
        (CUTLASS, 'tag = "v{version}"', 'tag = "v{number}"', "tag: a name with {version} or {release} in it"),
        (CUTLASS, 'sha256 = "1e71', 'sha256 = "1E71', "archives[0].sha256: String should match pattern"),
        (CUTLASS, 'gpu = "sm_120"', 'gpu = "sm120"', "gates[0].gpu: an architecture such as sm_121a"),
        (CUTLASS, 'variant = "next3"', 'variant = "next"', "advice[0].variant: one of native, next2"),
        (VLLM, '"0.10.2", sha256 = "57', '"ten", sha256 = "57', "archives[0].version: a version such as"),
        (VLLM, "pattern = '", "pattern = '^Version' # '", "version.pattern: a regular expression with a group"),
        (VLLM, "kernels = '", "kernels = '(", "build.kernels: a regular expression"),
        (ASM, 'uses = ["cutlass"]', 'uses = ["cutlas"]', "layers[0].uses: one of torch, cutlass"),
        ("variants/next3.toml", '"half_pair"', '"half_pear"', "options.encoder: one of half_pair,"),
        ("variants/next3.toml", "encoder =", "encodr =", "options.encoder: a value for this key"),
        ("variants/next2.toml", '"e2m1-converter"', '"e2m1"', "targets.cutlass: a patch that exists: cutlass/e2m1"),
        (
            "variants/turbo.toml",
            'forbids = ["to-e2m1',
            'forbids = ["to-e2',
            "rules[10].forbids[0]: a regular expression that",
        ),
        (
            "variants/turbo.toml",
            'forbids = ["to-e2m1"',
            "forbids = ['(^F2FP'",
            "rules[10].forbids[0]: a regular expression",
        ),
        ("variants/turbo.toml", "[targets.", "[patterns]\nno = '('\n[targets.", "patterns.no: a regular expression"),
    ],
)
def test_a_slip_is_one_problem_that_names_file_and_key(data: Path, file: str, old: str, new: str, key: str) -> None:
    edit(data / file, old, new)
    found = problems(data)
    assert any(problem.startswith(f"{file}: {key}") for problem in found), found


FLASHINFER, KV = "patches/flashinfer/e2m1-asm/patch.toml", "patches/vllm/kv-scales/patch.toml"
SMOOTH = '{ type = "float32", count = 1, values = [37.5] },'
"""An argument of the first probe with launches."""


@pytest.mark.parametrize(
    ("new", "key", "expected"),
    [
        ('{ type = "float31", count = 1 },', "launches.arguments[3].type", "'uint8', 'int32',"),
        ('{ type = "float32", count = 0 },', "launches.arguments[3].count", "greater than 0"),
        ('{ type = "float32" },', "launches.arguments[3]", "values of a number, or the count of an array"),
        ('{ type = "int32", values = [1], out = true },', "launches.arguments[3]", "values of a number, or the count"),
        ("{ count = 5 },", "launches.arguments[3]", "a type, or blocks"),
        ("{ blocks = 5 },", "launches", "arguments with a type"),
        ("{ blocks = 5, out = true },", "launches.arguments[3]", "blocks without another key"),
        ('{ type = "uint8", values = [256] },', "launches.arguments[3]", "values of the type uint8"),
        ('{ type = "int32", values = [1, -2147483649] },', "launches.arguments[3]", "values of the type int32"),
        ('{ type = "int32", values = [1.5] },', "launches.arguments[3]", "values of the type int32"),
        (
            '{ type = "int32", count = 2, values = [1, [2]] },',
            "launches.arguments[3]",
            "values that are all numbers, or",
        ),
        ('{ type = "int32", values = ["3|1"] },', "launches.arguments[3].values[0]", "a valid integer"),
        ('"float32[1] 37.5",', "launches.arguments[3]", "a dictionary or an instance of Argument"),
        ('{ type = "int32", of = 3 },', "launches.arguments[3].of", "no key of this name"),
    ],
)
def test_a_slip_in_the_arguments_of_a_launch_is_found_when_the_catalog_loads(
    data: Path, new: str, key: str, expected: str
) -> None:
    number = [probe.name for probe in load().patches["flashinfer/e2m1-asm"].probes].index("kernels-smooth-fast")
    edit(data / FLASHINFER, SMOOTH, new)
    found = problems(data)
    assert any(problem.startswith(f"{FLASHINFER}: probes[{number}].{key}") and expected in problem for problem in found)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("tokens = 16", "tokens = 18", "quantizes.caches[0]: tokens in fours"),
        ("scales = [1.0, 0.37]", "scales = [1.0]", "quantizes.caches[0].scales[1]: a value for this key"),
        (
            'reciprocal = "exact"',
            'reciprocal = "right"',
            "quantizes.caches[0].reciprocal: 'exact', 'up', 'down' or 'any'",
        ),
    ],
)
def test_a_slip_in_a_page_cache_is_found_when_the_catalog_loads(data: Path, old: str, new: str, key: str) -> None:
    edit(data / KV, old, new)
    assert any(problem.startswith(f"{KV}: probes[0].{key}") for problem in problems(data))


def test_a_patch_for_a_target_that_is_not_there_is_refused(data: Path) -> None:
    shutil.copytree(data / "patches/mlx/family-guard", data / "patches/tensorrt/family-guard")
    (found,) = problems(data)
    assert found.startswith("patches/tensorrt/family-guard/patch.toml: target: one of cutlass")


def test_toml_that_does_not_parse_is_a_problem_of_that_file_and_a_byte_order_mark_is_none(data: Path) -> None:
    (data / "variants/turbo.toml").write_text("name = ")
    native = data / "variants/native.toml"
    native.write_text("\ufeff" + native.read_text())
    found = problems(data)
    assert any(line.startswith("variants/turbo.toml: : TOML") for line in found)
    assert not any(line.startswith("variants/native.toml") for line in found)


def test_an_empty_catalog_is_not_a_catalog(tmp_path: Path) -> None:
    assert problems(tmp_path) == [".: : targets, patches and variants: not all of them"]


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no variant 'turbo3'") as error:
        load().variant("turbo3")
    assert "next2" in error.value.help


FAMILY_OF_EDITS = """
[[edits]]
each = { N = [2, 4], T = [{ name = "half", lanes = 1 }] }
op = "replace"
search = ["a.h"]
about = "{T.name}{N}"

[[edits.edits]]
find = "{ {N} }"
replace = "{M}"
count = "{T.lanes}"

[[edits.edits]]
each = { M = ["x", "y"] }
find = "{M}{N}"
replace = "z"
retired = [{ tokens = "{M}", state = "upstreamed" }]
"""


def test_a_family_of_edits_stands_for_one_edit_for_each_value() -> None:
    edits = expanded(tomllib.loads(FAMILY_OF_EDITS))["edits"]
    shared = {"op": "replace", "search": ["a.h"]}
    assert edits == [
        edit
        for n in (2, 4)
        for edit in (
            shared | {"about": f"half{n}", "find": f"{{ {n} }}", "replace": "{M}", "count": 1},
            *(
                shared
                | {"about": f"half{n}", "find": f"{m}{n}", "replace": "z"}
                | {"retired": [{"tokens": m, "state": "upstreamed"}]}
                for m in "xy"
            ),
        )
    ]


def test_strings_of_a_list_can_be_a_family() -> None:
    data = {"search": ["a(", {"each": {"F": ["b", "c"], "N": [1, 2]}, "text": "{F}{N}("}]}
    assert expanded(data) == {"search": ["a(", "b1(", "b2(", "c1(", "c2("]}


def test_tables_of_a_group_are_merged_key_by_key() -> None:
    group = {"defines": {"A": 1}, "also": ["sm_90"], "probes": [{"defines": {"B": 2}}, {"also": []}]}
    assert expanded({"probes": [group]})["probes"] == [
        {"defines": {"A": 1, "B": 2}, "also": ["sm_90"]},
        {"defines": {"A": 1}, "also": []},
    ]


def test_a_variant_has_what_it_extends_and_its_own_has_the_last_word() -> None:
    turbo, turbo2 = load().variants["turbo"], load().variants["turbo2"]
    assert turbo2.arch == turbo.arch
    assert turbo2.image == turbo.image
    assert turbo2.title != turbo.title
    options, others = (v.options_of("vllm")["e2m1-asm"] for v in (turbo, turbo2))
    assert others == options | {"encoder": "predicate_sum"}
    assert turbo2.rules[: len(turbo.rules)] == turbo.rules
    assert {rule.without for rule in turbo2.rules[len(turbo.rules) :]} == {("branches",)}


def test_a_rule_has_the_expression_of_the_pattern_that_it_names(data: Path) -> None:
    edit(data / "variants/turbo.toml", "[targets.", "[patterns]\nto-e2m1 = '^F2FP'\n[targets.")
    named, own = load().variants["turbo"].rules[10], load(data).variants["turbo"].rules[10]
    assert (named.forbids, own.forbids) == ((r"^F2FP\..*\bE2M1\b",), ("^F2FP",))


@pytest.mark.parametrize("named", ["parts/nothing", "turbo2", "turbo"])
def test_a_variant_that_extends_nothing_or_itself_is_refused(data: Path, named: str) -> None:
    edit(data / "variants/turbo.toml", '"parts/vllm-0.18.1"', f'"parts/vllm-0.18.1", "{named}"')
    assert any(": extends: a valid file" in line for line in problems(data))


def test_a_patch_names_the_files_of_upstreams_repository_and_finds_them_in_every_layout() -> None:
    patches = load().patches
    (probe,) = (probe for probe in patches["flashinfer/e2m1-asm"].probes if probe.name == "float8-to-e2m1-math")
    assert probe.needs
    assert probe.needs.search == ("data/include/flashinfer/math.cuh", "include/flashinfer/math.cuh")
    (edit,) = patches["flashinfer/arch-suffix"].edits
    assert edit.search == ("compilation_context.py", "flashinfer/compilation_context.py")
    assert {*patches["flashinfer/e2m1-asm"].edits[0].search} >= {
        "data/csrc/**/*.cu",
        "csrc/**/*.cu",
        "experimental/**/*.cu",
    }


def test_each_target_names_the_files_with_tests_for_exactly_sm120() -> None:
    catalog = load()
    assert {patch.target for patch in catalog.patches.values() if patch.exact_tests} == catalog.targets.keys()
