"""The explorer's page in a real browser: what it shows is what doctor answers, for each choice."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from browser import PATIENCE, browser
from flashinfer_wheel import is_python, unpack

from fp4patch import cli
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.commands.explore import answers
from fp4patch.commands.explore.run import page
from fp4patch.doctor.run import question
from fp4patch.doctor.tree import examine_each
from fp4patch.tree.apply import apply
from fp4patch.tree.status import status

pytestmark = pytest.mark.slow

Tree = Callable[[str, str], Path]
Asked = tuple[str, str, str]
LARGEST = 1_500_000
EVERY = bool(os.environ.get("FP4PATCH_TEST_ALL_TREES"))
"""True: every release that the record has, else those of SAMPLED."""
SAMPLED = {
    "cutlass": ["4.2.1"],
    "vllm": ["0.14.1"],
    "flashinfer": ["0.6.0"],
    "transformer_engine": ["2.18.0"],
}
QUESTIONS = {"cutlass": 20, "vllm": 50, "flashinfer": 45, "transformer_engine": 10}
"""Questions to ask about each state of a release."""
STATES = ("", "native", "next3") if EVERY else ("", "native")
"""Variants after which the questions are asked; empty: none."""
UNREAD = ("cute", "conv", "gemm", "examples", "python", "test", "tests", "tools", "docs", "*.json", "*.so")
KERNELS = ("flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/quantization", "flashinfer/data/include/flashinfer/")


UNANSWERED = {("cutlass", "4.7.1")}
"""Known releases whose sources could not be had when doctor was asked: neither an archive nor a copy of the tag."""


@pytest.fixture(scope="module")
def record() -> Any:
    return answers.read(load().root)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("explorer") / "explorer.html"
    assert cli.run(["explore", "--no-open", "--output", str(written)]) == 0
    return written


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def shown(running: Any, file: Path) -> Iterator[Any]:
    """The open page. A request for anything but the file, or an error of the script, fails the test."""
    tab = running.new_page()
    tab.set_default_timeout(PATIENCE)
    requests: list[str] = []
    errors: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.goto(file.as_uri())
    yield tab
    assert {url.partition("#")[0] for url in requests} <= {file.as_uri(), "about:blank"}
    assert errors == []


@pytest.fixture(scope="module")
def tree(pristine_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A copy of a release, small where doctor reads little of it."""

    def get(target: str, version: str) -> Path:
        folder = tmp_path_factory.mktemp("trees")
        if target == "flashinfer":
            return unpack(version, folder, lambda name: is_python(name) or name.startswith(KERNELS))
        left_out = shutil.ignore_patterns(*UNREAD)
        return Path(shutil.copytree(pristine_tree(target, version), folder / "tree", symlinks=True, ignore=left_out))

    return get


def go(tab: Any, view: str, **values: str) -> None:
    """Follow a deep link, as a click on it would."""
    tab.evaluate(
        "hash => new Promise(done => { if (location.hash === hash) return done();"
        " addEventListener('hashchange', () => setTimeout(done), { once: true }); location.hash = hash; })",
        f"#{view}?{urlencode(values)}",
    )


READ = """() => {
  const text = (of, what) => (of.querySelector(what) || { textContent: "" }).textContent;
  const level = (of) => ["green", "yellow", "red", "not-judged"].find((one) => of.classList.contains(one)) || "none";
  const result = document.getElementById("result");
  const outlook = (of) => ({
    gpu: of.dataset.gpu, level: level(of),
    verdict: text(of, ".word"), because: text(of, ".because"), todo: text(of, ".todo"),
  });
  const finding = (of) => [level(of), of.querySelector("h2").firstChild.textContent, text(of, "p"), text(of, ".todo")];
  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  return {
    gpus: [...result.querySelectorAll(":scope > .outlook")].map(outlook),
    after: [...result.querySelectorAll(".after .outlook")].map(outlook),
    findings: [...result.querySelectorAll(".finding")].map(finding),
    variant: text(result, "#advice .variant"), because: text(result, "#advice > .because"),
    commands: text(result, "#advice pre").split("\\n"),
    rows: [...result.querySelectorAll("#compiled tbody tr")].map(cells),
  };
}"""


CELLS = """() => [...document.querySelectorAll("#patches tbody tr")].map(
  (row) => [...row.cells].map((cell) => (cell.querySelector(".hidden") || cell).textContent))"""


def expected(answer: dict[str, Any], gpus: str) -> dict[str, Any]:
    """Return what the page must show of an answer of doctor."""
    advice = answer["recommended"]
    rows: list[tuple[str, ...]] = []
    for row in answer["builds"]:
        for gpu in gpus.split(","):
            asked, support = row["asked"] or "unset", row["reaches"].get(gpu)
            if there := row["on"].get(gpu):
                made = [f"stops: {there['stops']}"] if there["stops"] else map(", ".join, there["modules"].values())
                rows += [(asked, archs, gpu) for archs in made]
            elif not row["on"] and support is not None:
                stops = f"stops: {row['stops']}" if row["stops"] else ", ".join(row["kernels"]) or "none for SM12x"
                rows.append((asked, stops, gpu, support))
    return {
        "gpus": answer["gpus"],
        "findings": [[f["level"], f["subject"], f["found"], f["remedy"]] for f in answer["findings"]],
        "variant": advice["variant"],
        "because": advice["because"],
        "next": advice["next"],
        "rows": rows,
    }


def asked_of_doctor(root: Path, asked: list[Asked]) -> list[dict[str, Any]]:
    """Return doctor's own answers about a tree, now."""
    tree = identify_all([root], load())[0]
    found = next(one for one in status([root], on_wait=lambda _: None) if one.root == tree.root)
    options = [question(gpus, archs or None, cuda) for cuda, archs, gpus in asked]
    reports = list(examine_each(tree, found, options, on_wait=lambda _: None))
    cudas = [cuda for cuda, _, _ in asked]
    return [answers.asked(one, cuda) for one, cuda in zip(answers.answers(reports, cudas), cudas, strict=True)]


def compare(shown: Any, answer: dict[str, Any], gpus: str, state: str) -> None:
    found, wanted = shown.evaluate(READ), expected(answer, gpus)
    assert found["gpus"] == wanted["gpus"]
    assert found["findings"] == wanted["findings"]
    assert found["because"] == wanted["because"]
    without = "doctor has no advice" if wanted["variant"] is None else "none is needed"
    assert found["variant"] == (wanted["variant"] or (f"{state} is applied" if state else without))
    assert not wanted["next"] or wanted["next"] in found["commands"]
    if any(row[3:] for row in wanted["rows"]):
        assert [(row[0], row[4], row[2], row[1]) for row in found["rows"] if row[2] in ("sm_120", "sm_121")] == wanted[
            "rows"
        ]
    else:
        assert [(row[0], row[4], row[2]) for row in found["rows"] if row[2] in ("sm_120", "sm_121")] == wanted["rows"]


RELEASES = (
    [(row["target"], row["version"]) for row in answers.read(load().root)["releases"]]
    if EVERY
    else [(target, version) for target, versions in SAMPLED.items() for version in versions]
)


@pytest.mark.parametrize(("target", "version"), RELEASES)
def test_every_choice_gives_what_doctor_says(
    target: str, version: str, record: Any, shown: Any, tree: Callable[[str, str], Path]
) -> None:
    """With the default releases these are 240 sampled questions; each is asked of doctor, on the real tree."""
    (release,) = (row for row in record["releases"] if (row["target"], row["version"]) == (target, version))
    root = tree(target, version)
    for state, answered in release["states"].items():
        if state not in STATES:
            continue
        if state:
            assert not apply([root], state).refused
        every = [(cuda, archs, gpus) for cuda, of in answered.items() for archs, made in of.items() for gpus in made]
        sample = random.Random(f"{target} {version} {state}").sample(every, min(QUESTIONS[target], len(every)))
        for (cuda, archs, gpus), said in zip(sample, asked_of_doctor(root, sample), strict=True):
            go(shown, "answer", project=target, release=version, state=state, cuda=cuda, list=archs, gpu=gpus)
            compare(shown, said, gpus, state)


def test_the_samples_are_more_than_200(record: Any) -> None:
    states = {(row["target"], row["version"]): row["states"].keys() & set(STATES) for row in record["releases"]}
    assert sum(len(states[t, v]) * QUESTIONS[t] for t, versions in SAMPLED.items() for v in versions) >= 200


def test_the_record_is_the_document_that_the_command_prints(
    record: Any, pristine_tree: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    target, version, cuda, archs, gpus = "vllm", "0.14.1", "13.0", "12.0a;12.1a", "sm_121"
    (release,) = (row for row in record["releases"] if (row["target"], row["version"]) == (target, version))
    root = pristine_tree(target, version)
    options = ["--json", "--for", gpus, "--cuda", cuda, "--arch-list", archs]
    cli.run(["doctor", *options, str(root)])
    (told,) = json.loads(capsys.readouterr().out.replace(str(root), f"./{target}"))["trees"]
    said = answers.asked(release["states"][""][cuda][archs][gpus], cuda)
    rows = [{key: row[key] for key in answers.ROWS} for row in told["builds"]]
    kept = [{key: one[key] for key in answers.OF_A_GPU} for one in told["gpus"]]
    assert said == {key: told[key] for key in said} | {"builds": rows} | {"gpus": kept}


def test_its_controls_ask_the_question_and_the_address_keeps_it(shown: Any, record: Any) -> None:
    go(shown, "answer")
    for name, value in [
        ("project", "vllm"),
        ("release", "0.21.0"),
        ("list", "12.0a;12.1a"),
        ("cuda", "12.9"),
        ("gpu", "sm_121"),
    ]:
        shown.get_by_role("combobox").and_(shown.locator(f"[name={name}]")).select_option(value)
        assert shown.evaluate("document.activeElement.name") == name  # the keyboard stays where it was
    (release,) = (row for row in record["releases"] if (row["target"], row["version"]) == ("vllm", "0.21.0"))
    said = answers.asked(release["states"][""]["12.9"]["12.0a;12.1a"]["sm_121"], "12.9")
    compare(shown, said, "sm_121", "")
    address, before = shown.url, shown.evaluate(READ)
    shown.goto("about:blank")
    shown.goto(address)
    assert shown.evaluate(READ) == before


def test_the_recommended_variant_is_shown_with_its_effect(shown: Any, record: Any) -> None:
    (release,) = (row for row in record["releases"] if (row["target"], row["version"]) == ("vllm", "0.21.0"))
    go(shown, "answer", project="vllm", release="0.21.0", cuda="13.0", list="12.0a;12.1a", gpu="sm_121")
    found = shown.evaluate(READ)
    assert [line["level"] for line in (*found["gpus"], *found["after"])] == ["red", "green"]
    patched = release["states"]["native"]["13.0"]["12.0a;12.1a"]["sm_121"]
    assert found["after"] == answers.asked(patched, "13.0")["gpus"]


def test_kernels_that_need_no_instruction_are_judged_by_the_code_that_loads(shown: Any, record: Any) -> None:
    (release,) = (row for row in record["releases"] if row["target"] == "flash_attention")
    for state, made, support in (("", "8.0", "PTX"), ("native", "12.1", "native")):
        asked = {"cuda": "13.0", "list": "12.1a", "gpu": "sm_121"}
        go(shown, "answer", project="flash_attention", release=release["version"], state=state, **asked)
        said = answers.asked(release["states"][state]["13.0"]["12.1a"]["sm_121"], "13.0")
        compare(shown, said, "sm_121", state)
        assert shown.evaluate(READ)["rows"] == [["12.1a", support, "sm_121", "kernels", made]]


def test_the_matrix_has_every_state_of_the_record(shown: Any) -> None:
    rows = [
        r for r in json.loads((load().root / "records/matrix.json").read_text())["rows"] if r["target"] == "cutlass"
    ]
    go(shown, "matrix", project="cutlass")
    table = {row[0]: row[1:] for row in shown.evaluate(CELLS)}
    assert table.keys() == {row["version"] for row in rows}
    for row in rows:
        assert table[row["version"]][:-1] == list(row["states"].values())
    go(shown, "matrix", project="cutlass", states="upstreamed")
    assert [row[0] for row in shown.evaluate(CELLS)] == [
        r["version"] for r in reversed(rows) if "upstreamed" in r["states"].values()
    ]
    go(shown, "matrix", project="cutlass", verified="yes", find="4.5")
    assert [row[0] for row in shown.evaluate(CELLS)] == ["4.5.0"]


def test_the_instructions_are_those_of_the_record(shown: Any) -> None:
    compilers = answers.unpacked(json.loads((load().root / "records/instructions.json").read_text())["nodes"])
    go(shown, "instructions", toolkit="13.0", i="cvt.rn.satfinite.e2m1x2.f16x2")
    found = shown.evaluate(
        "() => [...document.querySelectorAll('#outcomes tr')].map(r => [...r.cells].map(c =>"
        " (c.querySelector('.mark') || c).className.split(' ').pop()))"
    )
    heads = shown.evaluate(
        "() => [...document.querySelectorAll('#outcomes thead th')].slice(1).map(c => c.textContent)"
    )
    features = [one for group in compilers["groups"] for one in group["features"]]
    assert len(found) == 1 + len(features)
    for row, feature in zip(found[1:], features, strict=True):
        assert row[1:] == [feature["cells"][f"sm_{head}"]["13.0"][0] for head in heads]
    assert {"120a", "121", "121f", "100a", "90"} <= set(heads)
    assert "F2FP" in shown.locator("#detail").inner_text()


@pytest.mark.parametrize("view", ["answer", "answer?project=flash_attention", "matrix", "instructions"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_follows_the_colours_of_the_system(
    running: Any, file: Path, view: str, scheme: Literal["light", "dark"]
) -> None:
    tab = running.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    tab.goto(f"{file.as_uri()}#{view}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    red, green, blue = tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red + green + blue > 384) == (scheme == "light")
    tab.close()


def test_every_control_has_a_name_and_the_keyboard_reaches_it(shown: Any) -> None:
    for view in ("answer", "matrix", "instructions"):
        go(shown, view)
        unnamed = (
            "() => [...document.querySelectorAll('select, input, button, a')].filter("
            "o => !(o.labels && o.labels.length) && !o.textContent.trim() && !o.ariaLabel).length"
        )
        assert shown.evaluate(unnamed) == 0
        levels = shown.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(o => Number(o.tagName[1]))")
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        shown.evaluate("document.activeElement.blur()")
        wanted = set(shown.evaluate("[...document.querySelectorAll('main select, main input')].map(o => o.name)"))
        reached = set()
        for _ in range(30):
            shown.keyboard.press("Tab")
            reached.add(shown.evaluate("document.activeElement.name || ''"))
        assert wanted <= reached


def test_it_is_one_small_file_that_allows_its_own_script_alone(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert file.stat().st_size < LARGEST
    assert "default-src 'none'" in text
    assert "unsafe-inline'; script-src 'sha256-" in text
    assert "src=" not in text.replace("default-src=", "").partition("<script")[0]


def test_every_release_that_can_be_fetched_has_answers(record: Any) -> None:
    """If not: python -m tools.regenerate answers --missing, with the trees of releases that git alone has."""
    answered = {(row["target"], row["version"]) for row in record["releases"]}
    targets = load().targets.values()
    known = {(t.name, v) for t in targets for v in (*t.commits, *(archive.version for archive in t.pinned))}
    assert known - answered == UNANSWERED
    assert {name for name, _ in answered} == load().targets.keys()


def test_a_release_without_answers_has_the_commands_that_ask_doctor(shown: Any) -> None:
    for project, release in UNANSWERED:
        go(shown, "answer", project=project, release=release, gpu="sm_121", cuda="13.0")
        assert f"no answers about NVIDIA CUTLASS {release}" in shown.inner_text("#result .card")
        commands = shown.inner_text("#result pre").splitlines()
        assert commands == [
            f"fp4patch fetch {project}=={release} ./{project}",
            f"fp4patch doctor --for sm_121 --cuda 13.0 ./{project}",
        ]
        assert shown.input_value("select[name=release]") == release
        shown.select_option("select[name=release]", "4.8.0")
        assert "fp4patch fetch cutlass==4.8.0" in shown.inner_text("#advice")


def test_what_an_address_names_in_vain_is_named(shown: Any) -> None:
    """A link to a release without answers must not show another release's answer without a word."""
    in_vain = {"release": "9.9.9", "cuda": "11.1", "list": "7.5", "gpu": "sm_75", "state": "zz"}
    go(shown, "answer", project="vllm", **in_vain)
    told = shown.inner_text("#unknown")
    assert all(told.count(f'"{value}"') == 1 for value in in_vain.values())
    go(shown, "nowhere")
    assert '"nowhere"' in shown.inner_text("#unknown")
    go(shown, "instructions", i="nothing", toolkit="1.0")
    assert 'instruction "nothing"' in shown.inner_text("#unknown")
    go(shown, "answer", project="cutlass", release="4.7.1")
    assert shown.locator("#unknown").count() == 0


def test_the_link_past_the_navigation_keeps_the_view(shown: Any) -> None:
    go(shown, "matrix", project="cutlass")
    shown.locator(".skip").focus()
    shown.keyboard.press("Enter")
    assert shown.evaluate("document.activeElement.id") == "main"
    assert shown.locator("#patches").count() == 1


def test_the_keyboard_and_the_title_follow_a_link(shown: Any) -> None:
    go(shown, "instructions")
    shown.locator("#outcomes tbody a").last.press("Enter")
    shown.wait_for_function("document.activeElement.id === 'detail'")
    assert shown.title().startswith("FP4 instructions")
    shown.get_by_role("link", name="Releases × patches").press("Enter")
    shown.wait_for_function("document.activeElement.id === 'main'")
    assert shown.title().startswith("The result of each patch")


def test_a_filter_without_matches_and_a_new_answer_are_told(shown: Any) -> None:
    for view, rows in (("matrix", "#patches tbody tr"), ("instructions", "#outcomes tbody tr")):
        go(shown, view, find="zzz")
        assert shown.locator(rows).all_inner_texts() == ["Nothing matches these filters."]
    go(shown, "answer", project="vllm", release="0.33.0", cuda="13.0", gpu="sm_121")
    shown.select_option("select[name=gpu]", "sm_120")
    assert shown.text_content("[role=status]") == "sm_120 fine: NVFP4 native"


@pytest.mark.parametrize(("gpus", "archs"), [("sm_120", "12.0f"), ("sm_121", "12.1a"), ("sm_120,sm_121", "12.0f")])
def test_the_list_that_serves_the_gpus_is_a_command_to_copy(shown: Any, gpus: str, archs: str) -> None:
    go(shown, "answer", project="vllm", release="0.33.0", cuda="13.0", gpu=gpus)
    assert shown.locator("#advice pre").all_inner_texts()[1:] == [f"export TORCH_CUDA_ARCH_LIST={archs}"]


@pytest.mark.parametrize("gpu", ["sm_90", "sm_100"])
def test_nothing_is_claimed_for_a_gpu_that_doctor_does_not_judge(shown: Any, gpu: str) -> None:
    """The rows have the kernels for SM12x alone; a build for 10.0a has others, which load on a B200."""
    go(shown, "answer", project="vllm", release="0.33.0", cuda="13.0", list="10.0a;12.0a", gpu=gpu)
    assert shown.locator("#compiled table").count() == 0
    assert "Variant for sm_120 and sm_121: none is needed" in shown.inner_text("#advice")


def test_packed_values_come_back_and_equal_parts_are_one() -> None:
    value = {"a": [1, "x", None, {"b": [True, 1.5, "x"]}], "c": [True, 1.5, "x"], "d": "", "e": []}
    nodes = answers.packed(value)
    assert answers.unpacked(nodes) == value
    assert nodes.count("x") == 1
    assert len(nodes) < len(answers.packed([value, value, [value]])) <= len(nodes) + 2


def test_without_the_record_the_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("patches", "variants", "encoders"):
        (tmp_path / name).symlink_to(load().root / name)
    (tmp_path / "records").mkdir()
    monkeypatch.setenv("FP4PATCH_DATA", str(tmp_path))
    assert cli.run(["explore", "--no-open", "--output", str(tmp_path / "page.html")]) == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_browser_opens_the_page_and_where_there_is_none_one_line_says_so(there: bool, tmp_path: Path) -> None:
    written, opener, opened = tmp_path / "page.html", tmp_path / "bin" / "opener", tmp_path / "opened"
    opener.parent.mkdir()
    if there:
        opener.write_text(f'#!/bin/sh\necho "$1" >{opened}\n')
        opener.chmod(0o755)
    environ = {"PATH": str(opener.parent), "HOME": str(tmp_path), "BROWSER": "opener"}
    command = [sys.executable, "-m", "fp4patch", "explore", "--output", str(written)]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{written}\n"
    assert opened.exists() == there
    if there:
        assert opened.read_text() == f"{written.as_uri()}\n"
    else:
        assert ran.stderr == "there is no browser here: copy the file to a machine that has one, and open it there\n"


def test_the_page_is_the_same_each_time() -> None:
    assert page() == page()
