"""The data loads, and every mistake in it is reported at once, by file and key."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from few_probes import copy_data
from toml_text import document

from fp4patch.catalog.families import expanded
from fp4patch.catalog.manifest import data_root, load
from fp4patch.catalog.reading import Reader
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
    edit(data / "variants/turbo.toml", 'name = "turbo"', "nam = 1")
    found = problems(data)
    for expected in (
        "patches/flashinfer/arch-suffix/patch.toml: edits[0].count: a valid integer",
        "patches/flashinfer/arch-suffix/patch.toml: edits[0].surprise: no key of this name: 1",
        "patches/cutlass/e2m1-converter/patch.toml: applies: a version specifier",
        "variants/turbo.toml: nam: no key of this name: 1",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)


ENCODE, CONVERTER, GUARD = (f"patches/cutlass/e2m1-{name}/patch.toml" for name in ("encode", "converter", "guard"))
ASM, SUFFIX = "patches/vllm/e2m1-asm/patch.toml", "patches/flashinfer/arch-suffix/patch.toml"
FAMILY = "patches/vllm/sm120-family/patch.toml"
CUTLASS, VLLM, TE = (f"patches/{name}/target.toml" for name in ("cutlass", "vllm", "transformer_engine"))
COMMON = '["csrc/**/cutlass_extensions/common.hpp"]'


@pytest.mark.parametrize(
    ("file", "old", "new", "key"),
    [
        (ASM, "[[edits]]", 'edits = ["wrap-asm"]\n[[edit]]', "edits[0]: a table"),
        (ASM, "[[edits]]", "[edits]", "edits: a list"),
        (CONVERTER, 'op = "insert"\n', "", "edits[0].op: an operation: none"),
        (GUARD, "title = ", 'version = ""\ntitle = ', "version: some text"),
        (CONVERTER, 'search = ["inc', 'search = ["../inc', "edits[0].search[0]: a path inside the tree"),
        (SUFFIX, "count = 2", "count = 0", "edits[0].count: a number from 1 on: 0"),
        (SUFFIX, '"flashinfer/comp', '"flashinfer/**/*.cu", "', "edits[0].search: files of one language"),
        (
            GUARD,
            'VALUES = "{N}" }',
            "VALUES = 2 }\ninclude = ['stubs']",
            "probes[0].probes[0] (N = 2).include[0]: a directory",
        ),
        (FAMILY, f"search = {COMMON}", f'search = "{COMMON[2:-2]}"', "edits[0].search: a list"),
        (FAMILY, f"search = {COMMON}", "search = []", "edits[0].search: a glob at least"),
        (FAMILY, f"search = {COMMON}", 'search = ["csrc/**.hpp"]', "edits[0].search[0]: `**` as the whole name"),
        (FAMILY, 'find = "defined', 'find = "" # "defined', "edits[0].find: some text"),
        (FAMILY, 'since = "0.16"', 'state = "done"', "edits[0].retired[0].state: 'upstreamed' or 'not-needed'"),
        (FAMILY, 'since = "0.16"', 'since = "long ago"', "edits[0].retired[0].since: a version"),
        (CUTLASS, "marks = [", "marks = [] # [", "marks: a file at least"),
        (CUTLASS, 'tag = "v{version}"', 'tag = "v{number}"', "tag: a name with {version} or {release} in it"),
        (CUTLASS, 'version = "4.0.0"', 'version = "4.2.1"', "archives[0].version: one archive for each release"),
        (CUTLASS, 'sha256 = "1e71', 'sha256 = "1E71', "archives[0].sha256: a SHA-256"),
        (CUTLASS, 'gpu = "sm_120"', 'gpu = "sm120"', "gates[0].gpu: an architecture such as sm_121a"),
        (TE, 'patch = "e2m1-stochastic"', "", "defects[0]: `versions` or `patch`, which select the trees"),
        (
            TE,
            'patch = "e2m1-stochastic"',
            'patch = "stochastic"',
            "defects[0].patch: a patch that a variant has: 'stoch",
        ),
        (VLLM, '"0.10.2" = "57', '"ten" = "57', "series[0].sha256.ten: a version such as"),
        (VLLM, "pattern = '", "pattern = '^Version' # '", "version.pattern: a regular expression with a group"),
        (VLLM, "kernels = '", "kernels = '(", "build.kernels: a regular expression"),
        (
            "variants/next3.toml",
            '"half_pair"',
            '"half_pear"',
            "options.encoder: one of half_pair,",
        ),
        (
            "variants/next3.toml",
            '"e2m1-stochastic", "',
            '"',
            "targets.transformer_engine.options: one of its patches: '",
        ),
        (
            "variants/next2.toml",
            '"e2m1-converter"',
            '"e2m1-guard"',
            "targets.cutlass: each patch once: 2 of e2m1-guard",
        ),
        (
            "variants/native.toml",
            'probes = ["cutlass/[!s]*"]',
            "probes = []",
            "rules[0].probes: a probe at least",
        ),
        (
            "variants/native.toml",
            'arch = ["sm_120[af]", "sm_10[03]a"]',
            'arch = ["sm_90"]',
            "rules[0].arch: one of sm_120a, sm_120f",
        ),
    ],
)
def test_a_slip_is_one_problem_that_names_file_and_key(data: Path, file: str, old: str, new: str, key: str) -> None:
    edit(data / file, old, new)
    found = problems(data)
    assert any(problem.startswith(f"{file}: {key}") for problem in found), found
    assert len(found) <= 2, found


def test_a_patch_for_a_target_that_is_not_there_is_refused(data: Path) -> None:
    shutil.copytree(data / "patches/mlx/family-guard", data / "patches/tensorrt/family-guard")
    (found,) = problems(data)
    assert found.startswith("patches/tensorrt/family-guard/patch.toml: target: a target, with patches/tensorrt/target")


def test_a_byte_order_mark_is_no_mistake(data: Path) -> None:
    path = data / "variants/turbo.toml"
    path.write_text("\ufeff" + path.read_text())
    assert "turbo" in load(data).variants


def test_a_template_that_is_no_text_is_refused(data: Path) -> None:
    (data / "patches/cutlass/e2m1-converter/converter.cuh").write_bytes(b"// caf\xe9")
    (found,) = problems(data)
    assert found.startswith("patches/cutlass/e2m1-converter/patch.toml: edits[0].template: a file of UTF-8 text")


def test_an_unknown_op_names_the_ops_there_are(data: Path) -> None:
    edit(data / CONVERTER, 'op = "insert"', 'op = "sed"')
    (found,) = problems(data)
    assert "edits[0]" in found
    assert "add-element" in found


@pytest.mark.parametrize(
    ("arch", "pattern", "key"),
    [("sm_121b", "F2FP", "arch: one of sm_120a"), ("sm_121a", "(", "forbids[0]: a regular expression")],
)
def test_a_rule_with_a_broken_pattern_or_architecture_is_refused(data: Path, arch: str, pattern: str, key: str) -> None:
    path = data / "variants/turbo.toml"
    rule = f'\n[[rules]]\nprobes = ["*"]\narch = ["{arch}"]\nbecause = "x"\nforbids = ["{pattern}"]\n'
    path.write_text(path.read_text() + rule)
    (found,) = problems(data)
    assert found.startswith("variants/turbo.toml: rules[")
    assert f"].{key}" in found


def test_toml_that_does_not_parse_is_a_problem_of_that_file(data: Path) -> None:
    (data / "variants/turbo.toml").write_text("name = ")
    assert any(line.startswith("variants/turbo.toml: : TOML") for line in problems(data))


def test_an_empty_catalog_is_not_a_catalog(tmp_path: Path) -> None:
    assert problems(tmp_path) == [f": : targets, patches and variants: not all of them below {tmp_path}"]


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no variant 'turbo3'") as error:
        load().variant("turbo3")
    assert "next2" in error.value.help


def families_written_out(data: dict[str, Any]) -> dict[str, Any]:
    wrong: list[str] = []
    table: dict[str, Any] = expanded(data, lambda *problem: wrong.extend(problem))
    assert wrong == []
    return table


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
    edits = families_written_out(tomllib.loads(FAMILY_OF_EDITS))["edits"]
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
    assert [edit.key for edit in edits] == [
        "edits[0].edits[0] (N = 2, T = half)",
        "edits[0].edits[1] (M = x) (N = 2, T = half)",
        "edits[0].edits[1] (M = y) (N = 2, T = half)",
        "edits[0].edits[0] (N = 4, T = half)",
        "edits[0].edits[1] (M = x) (N = 4, T = half)",
        "edits[0].edits[1] (M = y) (N = 4, T = half)",
    ]


def test_strings_of_a_list_can_be_a_family() -> None:
    data = {"search": ["a(", {"each": {"F": ["b", "c"], "N": [1, 2]}, "text": "{F}{N}("}]}
    assert families_written_out(data) == {"search": ["a(", "b1(", "b2(", "c1(", "c2("]}


def test_tables_of_a_group_are_merged_key_by_key() -> None:
    group = {"defines": {"A": 1}, "also": ["sm_90"], "probes": [{"defines": {"B": 2}}, {"also": []}]}
    assert families_written_out({"probes": [group]})["probes"] == [
        {"defines": {"A": 1, "B": 2}, "also": ["sm_90"]},
        {"defines": {"A": 1}, "also": []},
    ]


@pytest.mark.parametrize(
    ("each", "wrong"),
    [
        ("[2, 4]", "edits[0].each: a list of values for each name: { N = [2, 4, 8] }: [2, 4]"),
        ("{ N = 2 }", "edits[0].each: a list of values for each name: { N = [2, 4, 8] }: {'N': 2}"),
        ("{ N = [] }", "edits[0].each: a list of values for each name: { N = [2, 4, 8] }: {'N': []}"),
        ("{ N = [2], M = [3] }", "edits[0].each.M: {M} in a string of the table: none"),
        ("{ N = [{ a = 1 }] }", "edits[0].each.N: {N} among its values: values without it"),
        ("{ N = [{ a = 1 }, 2] }", "edits[0].each.N: {N} among its values: values without it"),
    ],
)
def test_a_family_that_has_no_values_or_does_not_use_them_is_refused(data: Path, each: str, wrong: str) -> None:
    edit(data / CONVERTER, 'search = ["include/cutlass/numeric_conversion.h"]', f"search = ['a{{N}}.h']\neach = {each}")
    assert f"{CONVERTER}: {wrong}" in problems(data)


def test_a_problem_of_an_edit_of_a_family_names_the_place_where_it_is_written(data: Path) -> None:
    edit(
        data / ENCODE,
        'defined(FP4PATCH_E2M1_INSTRUCTION)"\n\n[[edits.edits]]\n',
        '"\nsurprise = 1\n\n[[edits.edits]]\n',
    )
    assert problems(data) == [f"{ENCODE}: edits[2].edits[0] (N = 2).surprise: no key of this name: 1"]
    edit(data / ENCODE, "surprise = 1\n", "")
    edit(data / ENCODE, 'template = "scalar.cuh"', 'template = "scalars.cuh"')
    assert problems(data) == [f"{ENCODE}: edits[1].edits[0].template: a file beside patch.toml: 'scalars.cuh'"]


def test_a_group_in_a_group_is_refused(data: Path) -> None:
    edit(data / ENCODE, "[[edits.edits]]\n", "[[edits.edits]]\nedits = []\n")
    assert problems(data) == [f"{ENCODE}: edits[0].edits[0].edits: no key of this name: []"]


def test_a_variant_has_what_it_extends_and_its_own_has_the_last_word() -> None:
    turbo, turbo2 = load().variants["turbo"], load().variants["turbo2"]
    assert turbo2.arch == turbo.arch
    assert turbo2.image == turbo.image
    assert turbo2.title != turbo.title
    options, others = (v.targets["vllm"].options["e2m1-asm"] for v in (turbo, turbo2))
    assert others == options | {"encoder": "predicate_sum"}
    (rule,), (other,) = ([r for r in v.rules if "vllm/half-block-to-nvfp4" in r.probes] for v in (turbo, turbo2))
    assert other == replace(rule, because="branch-free", without=("branches", *rule.without))
    assert len(turbo2.rules) == len(turbo.rules)


def test_a_problem_of_what_a_variant_extends_names_that_file(data: Path) -> None:
    part = data / "variants/parts/sm121-in-software.toml"
    edit(part, "[[rules]]\n", 'colour = "green"\n\n[[rules]]\nidentcal = true\n')
    assert problems(data) == [
        "variants/parts/sm121-in-software.toml: rules[0].identcal: no key of this name: True",
        "variants/parts/sm121-in-software.toml: colour: no key of this name: 'green'",
    ]


@pytest.mark.parametrize("named", ["parts/nothing", "turbo2", "turbo", "../turbo2"])
def test_a_variant_that_extends_nothing_or_itself_is_refused(data: Path, named: str) -> None:
    edit(data / "variants/turbo.toml", '"parts/vllm-0.18.1"', f'"parts/vllm-0.18.1", "{named}"')
    assert any(": extends: another file below variants/, without its .toml: " in line for line in problems(data))


def test_a_part_that_no_variant_extends_is_refused(data: Path) -> None:
    (data / "variants/parts/spare.toml").write_text('cost = ""\n')
    assert problems(data) == ["variants/parts/spare.toml: : a variant that extends this file: none"]


def test_options_of_a_variant_are_for_a_patch_that_takes_some(data: Path) -> None:
    edit(data / "variants/next2.toml", "[targets.cutlass]", '[options]\nencoder = "threshold"\n\n[targets.cutlass]')
    assert problems(data) == ["variants/next2.toml: options: a patch that takes options: none"]


def test_an_option_that_is_missing_is_a_problem(data: Path) -> None:
    edit(data / "variants/next3.toml", "encoder =", "encodr =")
    assert "variants/next3.toml: options.encoder: a value for this key: none" in problems(data)


def test_the_text_of_expanded_data_says_the_same(tmp_path: Path) -> None:
    reader = Reader(data_root())
    for path in data_root().glob("patches/*/*/patch.toml"):
        table = reader.table(path)
        assert table
        assert tomllib.loads(document(table)) == table
    assert reader.problems == []
