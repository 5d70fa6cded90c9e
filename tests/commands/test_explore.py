"""The explorer's page in a real browser: what it shows is what doctor answers, for each choice."""

import base64
import json
import random
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import opened
from flashinfer_wheel import is_python, unpack

from fp4patch import cli
from fp4patch.catalog.identify import identify_all
from fp4patch.catalog.manifest import load
from fp4patch.commands import explore_page
from fp4patch.commands.explore_page import CUDA, GPUS, texts_of
from fp4patch.doctor.run import question
from fp4patch.doctor.tree import read_facts
from fp4patch.doctor.tree_answers import judge
from fp4patch.tree.apply import apply
from fp4patch.tree.status import status

pytestmark = pytest.mark.slow

Asked = tuple[str, str, str]
LARGEST = 300_000
QUESTIONS = 8
"""Questions to ask doctor about each state of a release; the seed is the release and the state."""
KERNELS = ("flashinfer/data/csrc/nv_internal/tensorrt_llm/kernels/quantization", "flashinfer/data/include/flashinfer/")
UNANSWERED = {("cutlass", "4.7.1")}
"""Known releases whose sources could not be had when doctor was asked: neither an archive nor a copy of the tag."""


@pytest.fixture(scope="module")
def record(file: Path) -> Any:
    """What the page has in it, from which its script answers."""
    (data,) = re.findall(r'<template id="data">(.*?)</template>', file.read_text(encoding="utf-8"))
    return json.loads(zlib.decompress(base64.b64decode(data)))


def answer(record: Any, release: str, state: str, asked: Asked) -> Any:
    """The answer of the page about ``vllm==0.33.0`` in a state."""
    (row,) = (row for row in record["releases"] if f"{row['target']}=={row['version']}" == release)
    cuda, archs, gpus = asked
    return json.loads(record["answers"][row["states"][state][cuda][archs][gpus]].replace(CUDA, cuda))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("explorer") / "explorer.html"
    assert cli.run(["explore", "--output", str(written)]) == 0
    return written


@pytest.fixture(scope="module")
def shown(browser: Any, file: Path) -> Iterator[Any]:
    """The open page. A request for anything but the file fails the test."""
    requests: list[str] = []
    with opened(browser, "about:blank") as tab:
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(file.as_uri())
        tab.locator("#result").wait_for()
        yield tab
    assert {url.partition("#")[0] for url in requests} <= {file.as_uri(), "about:blank"}


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


def expected(answer: dict[str, Any], gpus: str) -> dict[str, Any]:
    """Return what the page must show of an answer of doctor."""
    rows = []
    for row, gpu in product(answer["builds"], gpus.split(",")):
        there = row["on"].get(gpu) or {"stops": row["stops"], "modules": {"": row["kernels"]}}
        modules = (f"{name} {', '.join(archs) or 'none for SM12x'}".strip() for name, archs in there["modules"].items())
        made = f"stops: {there['stops']}" if there["stops"] else "; ".join(modules)
        made = f"not evaluated: {row['error']}" if row["error"] else made
        rows.append([row["asked"] or "unset", gpu, row["reaches"].get(gpu, ""), made])
    return {
        "gpus": [{key: one[key] for key in ("gpu", "level", "verdict", "because", "todo")} for one in answer["gpus"]],
        "findings": [[f["level"], f["subject"], f["found"], f["remedy"]] for f in answer["findings"]],
        "rows": rows,
    }


def compare(shown: Any, answer: dict[str, Any], gpus: str, state: str) -> None:
    found = shown.evaluate(READ)
    wanted = expected(answer, gpus)
    advice = answer["recommended"]
    assert {key: found[key] for key in wanted} == wanted
    assert found["because"] == advice["because"]
    without = "doctor has no advice" if advice["variant"] is None else "none is needed"
    assert found["variant"] == (advice["variant"] or (f"{state} is applied" if state else without))
    assert not advice["next"] or advice["next"] in found["commands"]


def flashinfer(version: str, folder: Path) -> Path:
    return unpack(version, folder, lambda name: is_python(name) or name.startswith(KERNELS))


@pytest.mark.parametrize(("target", "version"), [("vllm", "0.14.1"), ("flashinfer", "0.6.0")])
def test_the_page_has_what_doctor_says_of_the_real_tree(
    target: str, version: str, record: Any, vllm: Callable[[str], Path], tmp_path: Path
) -> None:
    """Before and after native: of the record's thousands of questions, as many as take ten seconds."""
    root = vllm(version) if target == "vllm" else flashinfer(version, tmp_path)
    (release,) = (row for row in record["releases"] if (row["target"], row["version"]) == (target, version))
    for state in ("", "native"):
        if state:
            assert not apply([root], state, write=True).refused
        numbers = release["states"][state]
        every = [(cuda, archs, gpus) for cuda, of in numbers.items() for archs, made in of.items() for gpus in made]
        sample: list[Asked] = random.Random(f"{target} {version} {state}").sample(every, QUESTIONS)
        (tree,) = identify_all([root], load())
        (found,) = (one for one in status([root]) if one.root == tree.root)
        options = [question([gpus] if gpus else [], archs or None, cuda) for cuda, archs, gpus in sample]
        facts = read_facts(tree, found, options)
        reports = [judge(facts, asked) for asked in options]
        for asked, text in zip(sample, texts_of(reports, [cuda for cuda, _, _ in sample]), strict=True):
            assert answer(record, f"{target}=={version}", state, asked) == json.loads(text.replace(CUDA, asked[0]))


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize(
    ("release", "state", "cuda", "archs"),
    [
        ("vllm==0.33.0", "", "13.0", ""),
        ("vllm==0.14.1", "native", "12.9", "12.0a;12.1a"),
        ("flashinfer==0.6.0", "", "12.8", "12.0"),
        ("flash_attention==2.7.2.post1", "", "13.0", "12.1a"),
        ("cutlass==4.2.1", "", "13.5", ""),
        ("transformer_engine==2.18.0", "next3", "13.0", ""),
    ],
)
def test_an_answer_is_shown_as_it_is(
    shown: Any, record: Any, release: str, state: str, cuda: str, archs: str, gpus: str
) -> None:
    project, _, version = release.partition("==")
    go(shown, "answer", project=project, release=version, state=state, cuda=cuda, list=archs, gpu=gpus)
    compare(shown, answer(record, release, state, (cuda, archs, gpus)), gpus, state)


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
    compare(shown, answer(record, "vllm==0.21.0", "", ("12.9", "12.0a;12.1a", "sm_121")), "sm_121", "")
    address, before = shown.url, shown.evaluate(READ)
    shown.goto("about:blank")
    shown.goto(address)
    assert shown.evaluate(READ) == before


def test_the_recommended_variant_is_shown_with_its_effect(shown: Any, record: Any) -> None:
    go(shown, "answer", project="vllm", release="0.21.0", cuda="13.0", list="12.0a;12.1a", gpu="sm_121")
    found = shown.evaluate(READ)
    assert [line["level"] for line in (*found["gpus"], *found["after"])] == ["red", "green"]
    patched = answer(record, "vllm==0.21.0", "native", ("13.0", "12.0a;12.1a", "sm_121"))
    assert found["after"] == expected(patched, "sm_121")["gpus"]
    patches = shown.locator("#evidence li strong").all_inner_texts()
    assert "vllm/cmake-sm121a" in patches
    assert set(patches) <= set(load().variant("native").patch_ids)


def test_the_instructions_are_those_of_the_record(shown: Any) -> None:
    compilers = json.loads((load().root / explore_page.INSTRUCTIONS).read_text())
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


def test_every_control_has_a_name_and_the_keyboard_reaches_it(shown: Any) -> None:
    for view in ("answer", "instructions"):
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
    assert "src=" not in text.replace("default-src=", "").partition("<template")[0]


def test_every_release_that_can_be_fetched_has_answers(record: Any) -> None:
    """If not: python -m tools.regenerate answers --missing, with the trees of releases that git alone has."""
    answered = {(row["target"], row["version"]) for row in record["releases"]}
    targets = load().targets.values()
    known = {(t.name, v) for t in targets for v in (*t.commits, *(archive.version for archive in t.archives))}
    assert known - answered == UNANSWERED
    assert {name for name, _ in answered} == load().targets.keys()


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
    go(shown, "answer", project="cutlass", release="4.8.0")
    assert shown.locator("#unknown").count() == 0


def test_without_the_record_the_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("patches", "variants", "encoders"):
        (tmp_path / name).symlink_to(load().root / name)
    (tmp_path / "records").mkdir()
    monkeypatch.setenv("FP4PATCH_DATA", str(tmp_path))
    assert cli.run(["explore", "--output", str(tmp_path / "page.html")]) == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_browser_opens_the_page_and_where_there_is_none_one_line_says_so(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path))
    written = tmp_path / "explorer.html"
    opened: list[str] = []

    def browser_opens(address: str) -> bool:
        opened.append(address)
        return there

    monkeypatch.setattr("webbrowser.open", browser_opens)
    monkeypatch.setattr("fp4patch.commands.explore_page.page", lambda: "the page")
    assert cli.run(["explore"]) == 0
    assert (opened, written.read_text()) == ([written.as_uri()], "the page")
    told = capsys.readouterr()
    assert told.out == f"{written}\n"
    assert ("copy the file" in told.err) is not there
