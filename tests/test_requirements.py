"""Lock file of `make`: every dependency of pyproject.toml, at a version that it allows, by hash."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PROJECT["dependency-groups"]
INSTALLED_BY_MAKE = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *PROJECT["project"]["optional-dependencies"]["cuda"],
    *GROUPS["dev"],
]


def locked(file: str) -> Iterator[Requirement]:
    text = (ROOT / file).read_text().replace("\\\n", "")
    for line in (line for line in text.splitlines() if not line.startswith("#")):
        requirement, *hashes = line.split(" --hash=")
        assert hashes, line
        assert all(value.strip().startswith("sha256:") for value in hashes)
        yield Requirement(requirement)


@pytest.mark.parametrize(
    ("file", "wanted"), [("requirements.txt", INSTALLED_BY_MAKE), ("requirements-audit.txt", GROUPS["audit"])]
)
def test_every_dependency_is_locked_at_a_version_that_it_allows(file: str, wanted: list[str]) -> None:
    pinned = [(one.name, next(iter(one.specifier)).version) for one in locked(file)]
    for requirement in map(Requirement, wanted):
        versions = [version for name, version in pinned if name == requirement.name]
        assert versions, f"{requirement} is not in {file}: run `make lock`"
        assert all(version in requirement.specifier for version in versions), f"{requirement}: run `make lock`"


def test_nothing_says_from_which_index_it_came() -> None:
    for file in ("requirements.txt", "requirements-audit.txt"):
        assert "://" not in (ROOT / file).read_text()
