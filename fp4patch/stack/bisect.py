"""The release from which on a patch can go."""

from collections.abc import Callable, Mapping

from packaging.version import Version

from fp4patch.catalog.target import Target
from fp4patch.core.release import is_version
from fp4patch.sources.history import Clone
from fp4patch.stack.files import Release
from fp4patch.stack.plan import Goes, OnRelease, Outcome, Patch, version_of


def versions(target: Target, clone: Clone | None) -> list[str]:
    """Return the releases of a target that a clone has tags of, or that are pinned, the oldest first."""
    if clone:
        tags = {version_of(tag, target): tag for tag in clone.tags}
        known = [name for name in tags if is_version(name) and not Version(name).is_prerelease]
        if known:
            return sorted(known, key=Version)
    return [archive.version for archive in target.archives]


def goes(patch: Patch, target: Target, releases: Mapping[str, str], opened: Callable[[str], Release]) -> Goes:
    """Return the release from which on a patch can go, of some, the oldest first, each with the name that opens it.

    A release is between two of which the older has the patch not, and the newer has it: what was taken back between is
    not seen.
    """

    def has(version: str) -> bool:
        release = opened(releases[version])
        return OnRelease(release, (), lambda _: None).presence(patch).outcome is Outcome.IN

    names = list(releases)
    if not names or not has(names[-1]):
        return Goes(patch.label, target.name, newest="".join(names[-1:]))
    low, high = -1, len(names) - 1  # the oldest is not known to lack it
    while high - low > 1:
        middle = (low + high) // 2
        if has(names[middle]):
            high = middle
        else:
            low = middle
    return Goes(patch.label, target.name, names[high], names[low] if low >= 0 else "", names[-1])
