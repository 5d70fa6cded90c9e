"""Releases of projects, and the specifiers that select some of them."""

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


def is_version(text: str) -> bool:
    """Return whether a text is a version (PEP 440)."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def covers(specifier: str, version: Version | str | None) -> bool:
    """Return whether a release, or a candidate of one, is among those of a specifier (PEP 440).

    An empty specifier covers every release, and it alone covers one that is not known.
    """
    return not specifier or (version is not None and SpecifierSet(specifier).contains(version, prereleases=True))
