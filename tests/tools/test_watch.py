"""The watch, on tomorrow's releases: real trees under a later version, on a package index on loopback."""

import contextlib
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from few_probes import few_probes
from flashinfer_wheel import unpack
from small_cutlass import FILES, checkout, git
from support import served, wheel

import fp4patch
from fp4patch.catalog.manifest import forget, load
from fp4patch.catalog.target import Archive
from fp4patch.commands.explore_page import MATRIX
from fp4patch.core.store import cache_dir
from fp4patch.doctor import known_defects
from tools import pytorch, watch
from tools.pages import answers

pytestmark = pytest.mark.slow

ROOT = Path(fp4patch.__file__).parents[1]


@dataclass
class World:
    """A copy of the catalog, an index that has what the catalog pins and what a test adds, and the watch on both."""

    folder: Path
    url: str
    added: list[tuple[str, str]] = field(default_factory=list)
    answering: bool = False
    """True to evaluate builds for records/answers.json."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def __post_init__(self) -> None:
        (self.folder / "cache").mkdir()
        for kind in ("compilations", "executions"):  # as in other tests: made once a machine
            (cache_dir() / kind).mkdir(parents=True, exist_ok=True)
            (self.folder / "cache" / kind).symlink_to(cache_dir() / kind)

    def release(self, project: str, file: Path, attributes: str = "") -> None:
        """Put a file on the index, with the hash that it has now."""
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        self.added.append((project, f'<a href="{file.name}#sha256={digest}" {attributes}>{file.name}</a>'))

    def place(self, project: str) -> Path:
        """The directory of a project's files."""
        folder = self.folder / "index" / "simple" / project
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def watch(self, *options: str) -> tuple[int, str]:
        """Exit status, and what was printed."""
        forget()  # a test may have changed pins
        archives = [archive for target in load(self.data).targets.values() for archive in target.archives]
        for project in {archive.project for archive in archives}:
            pinned = {a.filename: f"<a href='{a.filename}#sha256={a.sha256}'>{a.filename}</a>" for a in archives}
            links = [link for name, link in pinned.items() if name.startswith(project.replace("-", "_") + "-")]
            links += [link for name, link in self.added if name == project]
            self.page(project, links)
        mlx = [f"mlx-{version}-cp312-cp312-manylinux_2_35_x86_64.whl" for version in load().target("mlx").commits]
        torch = ["torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl"]
        for project, names in {"mlx": mlx, "torch": torch}.items():
            links = [f"<a href='{name}'>{name}</a>" for name in names]
            self.page(project, links + [link for name, link in self.added if name == project])
        environment = {
            "FP4PATCH_DATA": str(self.data),
            "FP4PATCH_CACHE": str(self.folder / "cache"),
            "PIP_INDEX_URL": f"{self.url}/simple/",
            "PIP_EXTRA_INDEX_URL": "",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
        }
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
            for name, value in environment.items():
                patch.setenv(name, value)
            forget()
            patch.setattr(answers, "cuda_releases", lambda: ("13.0",))  # one of nine: what it costs
            options = options if self.answering else (*options, "--no-answers")
            status = watch.main(watch.parsed(options))
        return status, printed.getvalue()

    def page(self, project: str, links: list[str]) -> None:
        (self.place(project) / "index.html").write_text(f"<html><body>{''.join(links)}</body></html>")

    def row(self, target: str, version: str) -> dict[str, Any] | None:
        rows = json.loads((self.data / "records" / "matrix.json").read_text())["rows"]
        return next((row for row in rows if (row["target"], row["version"]) == (target, version)), None)

    def pin(self, target: str, version: str) -> Archive | None:
        return load(self.data).target(target).archive(version)

    @property
    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.data)): p.read_bytes() for p in self.data.rglob("*") if p.is_file()}

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data in which every release that is pinned has a row, so that nothing but what a test adds is new.

    One probe is left: other tests verify releases.
    """
    folder = tmp_path_factory.mktemp("settled")
    (folder / "index").mkdir()
    with served(folder / "index") as url:
        few_probes(folder / "data", {"float8-to-e2m1": "vllm", "fill-half-pages": "vllm"})
        made = World(folder, url)
        file = made.data / "records" / "matrix.json"
        document = json.loads(file.read_text())
        held = {(row["target"], row["version"]) for row in document["rows"]}
        document["rows"] += [
            {"target": target.name, "version": archive.version, "source": "a test's", "states": {}}
            for target in load().targets.values()
            for archive in target.archives
            if (target.name, archive.version) not in held
        ]
        file.write_text(json.dumps(document))
        assert made.watch()[0] == 0  # the page is written as this index has it
    return made.data


@pytest.fixture
def world(settled: Path, tmp_path: Path) -> Iterator[World]:
    (tmp_path / "index").mkdir()
    with served(tmp_path / "index") as url:
        shutil.copytree(settled, tmp_path / "data")
        yield World(tmp_path, url)


def sdist(folder: Path, tree: Path, version: str) -> Path:
    """The tree as a source archive of that version of vLLM."""
    (tree / "PKG-INFO").write_text(f"Metadata-Version: 2.4\nName: vllm\nVersion: {version}\n")
    path = folder / f"vllm-{version}.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(tree, f"vllm-{version}")
    return path


def cutlass(pristine_tree: Callable[[str, str], Path], version: str) -> dict[str, str]:
    """The headers that the patches are about, of 4.2.1, under another version of before 4.7, whose shapes differ."""
    tree = pristine_tree("cutlass", "4.2.1")
    headers = {*FILES, *(file.relative_to(tree).as_posix() for file in (tree / "include" / "cutlass").glob("*.h"))}
    files = {name: (tree / name).read_text() for name in sorted(headers)}
    macros = dict(zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True))
    for name, number in macros.items():
        said = re.compile(rf"(#define CUTLASS_{name}) \d+")
        files["include/cutlass/version.h"] = said.sub(rf"\1 {number}", files["include/cutlass/version.h"])
    return files


def test_a_release_that_fits_gets_its_row_its_pin_and_its_verdict(world: World, vllm: Callable[[str], Path]) -> None:
    tomorrow = sdist(world.place("vllm"), vllm("0.33.0"), "0.34.0")
    world.release("vllm", tomorrow)
    before = world.files
    world.answering = True
    status, printed = world.watch("--verify", "native", "--no-execute")
    assert status == 0, printed
    row = world.row("vllm", "0.34.0")
    assert row is not None
    assert row["states"]["vllm/e2m1-asm"] == "applied"
    assert row["source"] == tomorrow.name
    assert row["verified"] == {"native": "pass"}
    pinned = world.pin("vllm", "0.34.0")
    assert pinned is not None
    assert (pinned.filename, pinned.subtree) == (tomorrow.name, "")
    after = world.files
    assert {name for name in after if before.get(name) != after[name]} == {
        *(f"records/{name}.json" for name in ("matrix", "releases", "answers")),
        "patches/vllm/target.toml",
        *(f"patches/{patch.id}/patch.toml" for patch in load(world.data).patches.values() if patch.target == "vllm"),
    }
    # A diff to review: one entry more, behind 0.33.0, and not a byte changed beside it.
    old, new = before["patches/vllm/target.toml"].decode(), after["patches/vllm/target.toml"].decode()
    entry = f'  {{ version = "0.34.0", sha256 = "{pinned.sha256}" }},\n'
    assert new == old.removesuffix("]\n") + entry + "]\n"
    # The release in `applies`, and doctor's facts: those of 0.33.0, whose files it has.
    of = before["patches/vllm/e2m1-asm/patch.toml"].decode(), after["patches/vllm/e2m1-asm/patch.toml"].decode()
    assert of[1] == of[0].replace('applies = ">=0.10.2,<=0.33.0"', 'applies = ">=0.10.2,<=0.34.0"') != of[0]
    for name in ("releases", "answers"):
        known = {one["version"]: one for one in recorded(world, name) if one["target"] == "vllm"}
        differing = {key for key, value in known["0.34.0"].items() if value != known["0.33.0"].get(key)}
        assert differing - {"states"} == {"version"} | ({"content"} if name == "answers" else set()), name
    assert "| vllm 0.34.0 |" in world.summary
    assert "## To decide" not in world.summary
    world.answering = False
    assert world.watch()[0] == 0
    assert world.files == after, "the second look finds nothing new"
    matrix = world.data / "records" / "matrix.json"
    matrix.write_text(matrix.read_text().replace('"native": "pass"', '"native": "fail"'))
    assert "vllm 0.34.0: fits" in world.watch("--verify", "none")[1], "what failed is looked at again"
    document = json.loads(matrix.read_text())
    (entry,) = (one for one in document["rows"] if (one["target"], one["version"]) == ("vllm", "0.34.0"))
    complete = json.loads(json.dumps(entry))
    del entry["states"]["vllm/sm120-family"]
    matrix.write_text(json.dumps(document))
    assert "vllm 0.34.0: fits" in world.watch("--missing", "vllm==0.34.0")[1], "a patch without a state is tried"
    assert world.row("vllm", "0.34.0") == complete


def test_a_release_in_which_a_patch_drifted_fails_every_day_until_it_fits(
    world: World, vllm: Callable[[str], Path]
) -> None:
    tree = vllm("0.33.0")
    header = tree / "csrc" / "quantization" / "fp4" / "nvfp4_utils.cuh"
    text = header.read_text()
    moved = text.replace("mov.b32 %0, {byte0, byte1, byte2, byte3};", "prmt.b32 %0, byte0, byte1, 0x5140;")
    assert moved != text
    header.write_text(moved)
    world.release("vllm", sdist(world.place("vllm"), tree, "0.34.0"))
    status, printed = world.watch("--verify", "next3")
    assert status == 1
    assert "e2m1-asm drifted" in printed, printed
    line = next(line for line in printed.splitlines() if "e2m1-asm drifted" in line)
    assert line.startswith("vllm 0.34.0: vllm/e2m1-asm drifted: csrc/quantization/fp4/nvfp4_utils.cuh:")
    assert "found an unknown instruction" in line
    assert "## Wrong" in world.summary
    assert "is refused" not in world.summary, "the drift says it, once"
    assert "### vllm 0.34.0: vllm/e2m1-asm" in world.summary
    assert "is refused" not in printed
    row = world.row("vllm", "0.34.0")
    assert row is not None
    assert (row["states"]["vllm/e2m1-asm"], row["verified"]) == ("drifted", {"next3": "fail"})
    assert world.pin("vllm", "0.34.0"), "so that who mends it can fetch it"
    assert world.watch("--verify", "none")[0] == 1


def recorded(world: World, name: str) -> list[dict[str, Any]]:
    """The releases of a record."""
    found = json.loads((world.data / "records" / f"{name}.json").read_text())["releases"]
    assert isinstance(found, list)
    return found


AS_IT_WAS = """
[[edits]]
op = "replace"
search = ["jit/moe_utils.py", "flashinfer/jit/moe_utils.py"]
about = "gen_moe_utils_module"
within = "gen_moe_utils_module"
find = "[9, 10]"
replace = "[9, 10, 12]"
present = ">=0.6.4"
retired = [{ tokens = "[9, 10, 12]", because = "the list names 12" }]
"""
"""How moe-utils-sm12x looked for the list when FlashInfer 0.7.4 was released."""


def test_what_upstream_made_of_a_patch_is_a_decision_with_upstreams_own_change(world: World, tmp_path: Path) -> None:
    """FlashInfer 0.7.4, on the day of its release."""
    kept: tuple[str, ...] = (
        "utils.cuh",
        "_build_meta.py",
        "jit/core.py",
        "jit/moe_utils.py",
        "jit/fused_moe.py",
        "/quantization.cuh",
    )
    kept += ("compilation_context.py", "quantization_utils.cuh", "jit/__init__.py", "jit/env.py", "jit/cpp_ext.py")
    kept += ("fp4_quantization.py", "jit/gemm/core.py")
    target = world.data / "patches/flashinfer/target.toml"
    for version in ("0.7.2.post1", "0.7.4"):
        site = tmp_path / version
        unpack(version, site, lambda name: name.endswith(kept) and "cutlass/" not in name)
        files = {str(file.relative_to(site)): file.read_text() for file in site.rglob("*") if file.is_file()}
        made = wheel(world.place("flashinfer-python") / f"flashinfer_python-{version}-py3-none-any.whl", files)
        pinned = load(ROOT).target("flashinfer").archive(version)
        assert pinned
        line = f'  {{ version = "{version}", sha256 = "{pinned.sha256}" }},\n'
        assert line in target.read_text()
        now = line.replace(pinned.sha256, hashlib.sha256(made.read_bytes()).hexdigest())
        target.write_text(target.read_text().replace(line, now if version != "0.7.4" else ""))
        world.release("flashinfer-python", made)
    record = world.data / "records/matrix.json"
    document = json.loads(record.read_text())
    document["rows"] = [row for row in document["rows"] if (row["target"], row["version"]) != ("flashinfer", "0.7.4")]
    record.write_text(json.dumps(document))
    patches = world.data / "patches/flashinfer"
    for file in patches.glob("*/patch.toml"):
        file.write_text(file.read_text().replace("<=0.7.4", "<=0.7.2.post1"))
    own = patches / "moe-utils-sm12x/patch.toml"
    mended = own.read_text()
    own.write_text(mended.partition("\n[[edits]]")[0] + AS_IT_WAS)

    status, printed = world.watch("--verify", "native")
    assert status == 1
    due = printed.partition("## To decide\n")[2].partition("## Wrong")[0]
    assert "### flashinfer 0.7.4: flashinfer/moe-utils-sm12x\n" in due, printed
    assert "Upstream's change since 0.7.2.post1:" in due
    assert "\n-        supported_major_versions=[9, 10], map_sm107_to_100f=True\n" in due
    assert "\n+        supported_major_versions=[8, 9, 10, 11, 12], map_sm107_to_100f=True\n" in due
    assert "`patches/flashinfer/moe-utils-sm12x/patch.toml` gets a sign of that" in due
    assert "Then `python -m tools.watch flashinfer==0.7.4` writes all records." in due
    assert due.count("###") == 1, "what fits is no decision"
    assert printed.count("moe-utils-sm12x drifted") == 2, "once as it goes on, and once in the table"
    assert "is refused" not in printed
    assert due in world.summary
    widened = {file.parent.name for file in patches.glob("*/patch.toml") if '<=0.7.4"' in file.read_text()}
    assert widened == {"arch-suffix", "e2m1-asm", "gdc-flag"}

    own.write_text(mended.replace("<=0.7.4", "<=0.7.2.post1"))
    status, printed = world.watch("--verify", "none", "flashinfer==0.7.4")
    assert (status, "## To decide" in printed) == (0, False), printed
    assert '<=0.7.4"' in own.read_text()
    row = world.row("flashinfer", "0.7.4")
    assert row
    assert row["states"]["flashinfer/moe-utils-sm12x"] == "upstreamed"
    assert "flashinfer 0.7.4" in {f"{one['target']} {one['version']}" for one in recorded(world, "releases")}


EXTENSIONS = "def _get_cuda_arch_flags():\n    supported_arches = ['8.9', '9.0a', {}]\n"
SELECT = 'if(arch_name MATCHES "^([0-9]+\\\\.[0-9][af]?(\\\\([0-9]+\\\\.[0-9]\\\\))?)$")\n'


def test_a_pytorch_that_takes_the_same_is_recorded_and_another_is_a_decision(world: World) -> None:
    record = world.data / "records/known.toml"
    head, _, _ = record.read_text().partition("[[pytorch]]")
    row = '[[pytorch]]\nsince = "2.9"\nextensions = ["9.0a", "12.1a"]\ncmake = "af"\n'
    record.write_text(f'{head}{row}\n{row.replace("2.9", "2.13")}until = "2.13.0"\n')
    for version, last in (("2.12.9", "'1.0'"), ("2.14.0", "'12.1a'"), ("2.15.0", "'12.1a', '12.1f'")):
        name = f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
        files = {pytorch.EXTENSIONS: EXTENSIONS.format(last), pytorch.CMAKE: SELECT}
        world.release("torch", wheel(world.place("torch") / name, files))
    before = record.read_text()
    status, printed = world.watch("--verify", "none")
    assert status == 1
    assert record.read_text() == before.replace('until = "2.13.0"', 'until = "2.14.0"')
    assert (
        printed.count("| torch 2.15.0 | arch lists | it takes other architectures: records/known.toml needs a row") == 1
    )
    assert 'extensions = ["9.0a", "12.1a", "12.1f"]' in printed
    new = row.replace("2.9", "2.15").replace('"12.1a"', '"12.1a", "12.1f"')
    record.write_text(record.read_text().replace('until = "2.14.0"\n', f'\n{new}until = "2.15.0"\n'))
    known_defects.read.cache_clear()
    assert world.watch("--verify", "none")[0] == 0


def test_the_newest_pytorch_of_the_record_is_as_its_row_says() -> None:
    """By the files of the wheels themselves: the first release of the last row, and the last one that was read."""
    last = known_defects.read(ROOT).pytorch[-1]
    for release in (f"{last.since}.0", last.until):
        assert not pytorch.differs(last, pytorch.of_wheel(release)), release
    before = known_defects.read(ROOT).pytorch[-2]
    assert pytorch.differs(before, pytorch.of_wheel(f"{last.since}.0"))


def test_a_release_that_has_wheels_alone_is_named_with_what_takes_its_tag(world: World) -> None:
    file = wheel(world.place("mlx") / "mlx-0.99.0-cp312-cp312-manylinux_2_35_x86_64.whl", {})
    world.release("mlx", file)
    status, printed = world.watch()
    assert status == 0
    command = "`python -m tools.watch --git mlx==0.99.0` takes its tag"
    assert f"- mlx 0.99.0: the package index has no mlx-0.99.0.tar.gz; {command}\n" in printed
    document = json.loads((world.data / "records/matrix.json").read_text())
    assert {"target": "mlx", "version": "0.99.0", "lacks": "mlx-0.99.0.tar.gz"} in document["without"]
    assert "0.99.0" not in world.watch()[1], "it is recorded, and named once"


def test_what_is_yanked_or_early_is_left_alone(world: World, tmp_path: Path) -> None:
    for name, attributes in (
        ("vllm-0.34.0.tar.gz", "data-yanked=''"),
        ("vllm-0.34.0rc1.tar.gz", ""),
        ("vllm-0.9.0.tar.gz", ""),
    ):
        file = world.place("vllm") / name
        file.write_bytes(b"not looked at")
        world.release("vllm", file, attributes)
    before = world.files
    status, printed = world.watch()
    assert (status, printed.strip()) == (0, "Nothing is new.")
    assert world.files == before
    status, printed = world.watch("--pre")
    assert status == 1
    assert "vllm 0.34.0rc1: fetch: vllm-0.34.0rc1.tar.gz is damaged" in printed


def test_a_release_without_an_archive_of_the_kind_is_named(world: World) -> None:
    file = wheel(world.place("vllm") / "vllm-0.34.0-py3-none-any.whl", {})
    world.release("vllm", file)
    assert world.watch()[0] == 0
    document = json.loads((world.data / "records/matrix.json").read_text())
    assert {"target": "vllm", "version": "0.34.0", "lacks": "vllm-0.34.0.tar.gz"} in document["without"]


def test_a_foreign_archive_is_of_the_release_that_its_tree_states(
    world: World, pristine_tree: Callable[[str, str], Path]
) -> None:
    for name, version in (("4.2.2.0", "4.2.1"), ("4.6.9.0", "4.6.9")):
        held = {f"cutlass_library/source/{k}": v for k, v in cutlass(pristine_tree, version).items()}
        path = wheel(world.place("nvidia-cutlass") / f"nvidia_cutlass-{name}-py3-none-any.whl", held)
        world.release("nvidia-cutlass", path)
    status, printed = world.watch("--verify", "none")
    assert status == 0, printed
    pinned = world.pin("cutlass", "4.6.9")
    assert pinned is not None
    assert (pinned.filename, pinned.holds) == (
        "nvidia_cutlass-4.6.9.0-py3-none-any.whl",
        "what comes with nvidia-cutlass 4.6.9.0",
    )
    assert "nvidia_cutlass-4.2.2.0-py3-none-any.whl holds cutlass 4.2.1, for which another archive" in printed
    assert "Nothing is new" in world.watch()[1]


def test_a_tag_without_an_archive_comes_by_git(
    world: World, pristine_tree: Callable[[str, str], Path], tmp_path: Path
) -> None:
    for target in load().targets:
        repository = tmp_path / "upstream" / target
        repository.mkdir(parents=True)
        files = cutlass(pristine_tree, "4.6.8") if target == "cutlass" else {"README": ""}
        for name, text in files.items():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(text)
        checkout(repository)
        for tag in ("v4.6.8", "v4.6.9rc1", "nightly") if target == "cutlass" else ():
            git(repository, "tag", tag)
        file = world.data / "patches" / target / "target.toml"
        file.write_text(file.read_text().replace(load().target(target).git, str(repository)))
    status, printed = world.watch("--git", "--verify", "none")
    assert status == 0, printed
    row = world.row("cutlass", "4.6.8")
    assert row is not None
    assert row["source"].endswith("v4.6.8")
    assert world.row("cutlass", "4.6.9rc1") is None
    assert world.pin("cutlass", "4.6.8") is None
    commit = git(tmp_path / "upstream/cutlass", "rev-parse", "HEAD").strip()
    pins = [*load(world.data).target("cutlass").commits.items()]
    assert ("4.6.8", commit) in pins
    assert pins == sorted(pins, key=lambda pin: [int(part) for part in pin[0].split(".")])
    assert f"- cutlass 4.6.8 is pinned: commit {commit}\n" in printed
    assert "4.6.8" in {one["version"] for one in recorded(world, "releases") if one["target"] == "cutlass"}
    shutil.rmtree(tmp_path / "upstream" / "vllm")
    status, printed = world.watch("--git")
    assert status == 1
    assert "| vllm | releases | git cannot list the tags" in printed


def rows(*states: tuple[str, str]) -> list[dict[str, Any]]:
    """Rows of one patch by version and state, and one of a tree inside another, which does not count."""
    within = {"cutlass/a": "upstreamed", "flashinfer/b": "applied"}
    inside = {"target": "flashinfer", "version": "1.0", "states": within}
    return [inside, *({"target": "cutlass", "version": v, "states": {"cutlass/a": state}} for v, state in states)]


@pytest.mark.parametrize(
    ("states", "since"),
    [
        ([("4.1", "applied"), ("4.2", "upstreamed"), ("4.10", "upstreamed")], "4.2"),
        ([("4.10", "upstreamed"), ("4.2", "applied")], "4.10"),
        ([("4.2", "upstreamed"), ("4.10", "applied")], ""),
        ([("4.1", "upstreamed"), ("4.2", "drifted"), ("4.3", "upstreamed")], "4.3"),
        ([("4.2", "not-needed")], ""),
    ],
)
def test_a_patch_is_taken_since_the_release_from_which_all_have_it(states: list[tuple[str, str]], since: str) -> None:
    newest = max((version for version, _ in states), key=lambda version: [int(part) for part in version.split(".")])
    expected = [{"patch": "cutlass/a", "since": since, "newest": newest}] if since else []
    assert watch.upstreamed(rows(*states)) == expected


def test_the_watch_notes_what_upstream_takes_and_what_it_loses_again() -> None:
    before = watch.upstreamed(rows(("4.1", "applied")))
    taken = watch.upstreamed(rows(("4.1", "applied"), ("4.2", "upstreamed")))
    lost = watch.upstreamed(rows(("4.1", "applied"), ("4.2", "upstreamed"), ("4.3", "drifted")))
    assert list(watch.changes(before, taken)) == ["cutlass/a: upstream has an equivalent since 4.2"]
    assert list(watch.changes(taken, lost)) == ["cutlass/a: upstream no longer has the equivalent of 4.2 to 4.2"]
    assert list(watch.changes(taken, taken)) == []


def test_the_record_has_what_its_rows_say() -> None:
    record = json.loads((ROOT / MATRIX).read_text())
    assert record["upstreamed"] == watch.upstreamed(record["rows"])
    assert {"patch": "cutlass/e2m1-converter", "since": "4.7.0", "newest": "4.8.0"} in record["upstreamed"]
