"""Fetching from real archives, from a package index on loopback, and from a git repository on disk."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from small_cutlass import checkout, git
from support import served, wheel

from fp4patch.catalog.identify import claimed_version
from fp4patch.catalog.manifest import load
from fp4patch.catalog.target import Archive, Target
from fp4patch.core import progress
from fp4patch.core.errors import SourceError, UsageError
from fp4patch.core.store import cache_dir, sha256
from fp4patch.sources import index
from fp4patch.sources.fetch import Fetched, fetch

pytestmark = pytest.mark.slow

CUTLASS = load().target("cutlass")


def get(version: str, to: Path, target: Target = CUTLASS, git_url: str | None = None) -> Fetched:
    return fetch(target, version, to, git_url=git_url, progress=progress.silent)


@pytest.mark.parametrize("version", ["4.2.1", "4.4.2", "4.5.0"])
def test_the_pinned_archives_hold_the_cutlass_that_the_catalog_says(
    pristine_tree: Callable[[str, str], Path], version: str
) -> None:
    assert str(claimed_version(pristine_tree("cutlass", version), CUTLASS)) == version


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Target, Path]]:
    """A package index on loopback with one wheel, as pip would be configured for it; a target pinned to it."""
    folder = tmp_path / "mirror" / "simple" / "tiny"
    folder.mkdir(parents=True)
    files = {f"tiny/cutlass/{mark}": "" for mark in CUTLASS.marks}
    path = wheel(folder / "tiny-1.0-py3-none-any.whl", files)
    (folder / "index.html").write_text(f'<html><body><a href="{path.name}">{path.name}</a></body></html>')
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("FP4PATCH_CACHE", str(tmp_path / "cache"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    archive = Archive(version="1.0", project="tiny", filename=path.name, sha256=digest, subtree="tiny/cutlass")
    with served(tmp_path / "mirror") as url:
        monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple/")
        yield replace(CUTLASS, archives=(archive,)), path


def test_the_index_of_pip_is_asked_once(mirror: tuple[Target, Path], tmp_path: Path) -> None:
    for name in ("deep/tree", "again"):
        fetched = get("1.0", tmp_path / name, mirror[0])
        assert (tmp_path / name / CUTLASS.marks[0]).is_file()
        assert fetched.source == mirror[1].name
        mirror[1].unlink(missing_ok=True)


def test_a_file_that_is_not_what_was_pinned_is_refused_and_nothing_is_left(
    mirror: tuple[Target, Path], tmp_path: Path
) -> None:
    wheel(mirror[1], {"tiny/cutlass/include/cutlass/cutlass.h": "evil"})
    with pytest.raises(SourceError, match="not the file that was pinned"):
        get("1.0", tmp_path / "tree", mirror[0])
    assert not (tmp_path / "tree").exists()


def test_a_damaged_file_in_the_cache_is_downloaded_again(mirror: tuple[Target, Path], tmp_path: Path) -> None:
    cached = index.download(mirror[0].archives[0], progress.silent)
    cached.write_bytes(b"half")
    get("1.0", tmp_path / "tree", mirror[0])
    assert sha256(cached) == mirror[0].archives[0].sha256


def test_an_index_without_the_file_is_one_clear_error(mirror: tuple[Target, Path], tmp_path: Path) -> None:
    archive = replace(mirror[0].archives[0], filename="tiny-2.0-py3-none-any.whl")
    with pytest.raises(SourceError, match=r"no package index has tiny-2\.0\S+ tiny has no such file"):
        get("1.0", tmp_path / "tree", replace(mirror[0], archives=(archive,)))
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize(
    "page",
    [
        '<meta name="pypi:repository-version" content="9.0">',
        '<a href="http://[x/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>',
        "<p>Please log in</p>",
    ],
)
def test_an_index_that_answers_with_something_else_is_one_clear_error(
    mirror: tuple[Target, Path], tmp_path: Path, page: str
) -> None:
    mirror[1].with_name("index.html").write_text(f"<html><body>{page}</body></html>")
    with pytest.raises(SourceError, match=r"no package index has tiny-1\.0-py3-none-any\.whl: \S"):
        get("1.0", tmp_path / "tree", mirror[0])


def test_an_index_that_cannot_be_reached_is_named_with_the_reason(
    mirror: tuple[Target, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(SourceError, match=r"no connection to 127\.0\.0\.1: Connection refused$") as error:
        get("1.0", tmp_path / "tree", mirror[0])
    assert "HTTPConnectionPool" not in error.value.message


def test_a_cache_that_cannot_be_written_is_not_blamed_on_the_tree(
    mirror: tuple[Target, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(SourceError, match=rf"download cannot be kept: {tmp_path / 'cache'}/archives") as error:
        get("1.0", tmp_path / "tree", mirror[0])
    assert "FP4PATCH_CACHE" in error.value.help


def test_a_user_without_a_home_is_told_where_downloads_can_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FP4PATCH_CACHE", raising=False)
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    with pytest.raises(SourceError, match="no home directory") as error:
        cache_dir()
    assert "FP4PATCH_CACHE" in error.value.help


def test_a_folder_that_cannot_be_looked_at_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot put the tree into .*: File name too long"):
        get("4.2.1", tmp_path / ("x" * 300))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repo = tmp_path / "upstream"
    for mark in CUTLASS.marks:
        (repo / mark).parent.mkdir(parents=True, exist_ok=True)
        (repo / mark).write_text("")
    git(checkout(repo), "tag", "v9.1.0")
    return repo


def test_git_brings_a_release_without_an_archive_and_a_tag_that_is_not_there_leaves_nothing_behind(
    repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=r"git cannot clone v9\.2\.0"):
        get("9.2.0", tmp_path / "tree", git_url=str(repository))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["upstream"]
    fetched = get("9.1.0", tmp_path / "tree", git_url=str(repository))
    assert (tmp_path / "tree" / ".git").exists()
    assert fetched.source.endswith("v9.1.0")


@pytest.mark.parametrize("tag", ["v1.0", "v1.1"])
def test_git_brings_all_of_a_release_of_which_the_index_has_a_part_and_else_the_part_comes(
    repository: Path, mirror: tuple[Target, Path], tmp_path: Path, tag: str
) -> None:
    git(repository, "tag", tag)
    part = replace(mirror[0].archives[0], partial=True)
    target = replace(mirror[0], archives=(part,), git=str(repository), commits={})
    fetched = fetch(target, "1.0", tmp_path / "tree", whole=True, progress=progress.silent)
    assert fetched.partial == bool(fetched.git_error) == (tag != "v1.0")
    assert (tmp_path / "tree" / ".git").exists() == (tag == "v1.0")
    assert (tmp_path / "tree" / CUTLASS.marks[0]).is_file()


def test_a_repository_of_something_else_is_refused(repository: Path, tmp_path: Path) -> None:
    other = replace(CUTLASS, marks=("not/there.h",))
    with pytest.raises(SourceError, match="is not NVIDIA CUTLASS"):
        get("9.1.0", tmp_path / "tree", other, git_url=str(repository))
    assert not (tmp_path / "tree").exists()


def test_a_folder_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "mine").write_text("x")
    with pytest.raises(UsageError, match="not an empty directory"):
        get("4.2.1", tmp_path / "tree")
    assert (tmp_path / "tree" / "mine").read_text() == "x"
