"""Safe extraction of one directory from a wheel or a source archive: nothing outside, no links, no devices."""

import tarfile
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from fp4patch.core.errors import SourceError


def extract(archive: Path, subtree: str, to: Path) -> None:
    """Write the files below ``subtree`` of the archive into ``to``, which must not exist.

    In a source archive the single leading directory (``vllm-0.16.0/``) is not part of a name. SourceError is raised for
    a damaged archive, and if there is no such directory.
    """
    with tempfile.TemporaryDirectory(dir=to.parent) as work:
        tree = _unpacked(archive, subtree, Path(work, "all"), ())
        if not tree.is_dir():
            advice = "the pin in target.toml is wrong; please report it"
            raise SourceError(f"{archive.name} holds no directory {subtree!r}", help=advice)
        tree.rename(to)


def read_files(archive: Path, subtree: str, names: Collection[str]) -> dict[str, bytes]:
    """Return the contents of some files below ``subtree`` of the archive, as far as it has them."""
    with tempfile.TemporaryDirectory() as work:
        tree = _unpacked(archive, subtree, Path(work, "all"), names)
        return {name: (tree / name).read_bytes() for name in names if (tree / name).is_file()}


def _unpacked(archive: Path, subtree: str, work: Path, names: Collection[str]) -> Path:
    """Return where ``subtree`` is, unpacked into ``work``: all its regular files, or those with these names."""

    def wanted(name: str) -> bool:
        path = PurePosixPath(name)
        inside = path.is_relative_to(subtree) and ".." not in path.parts
        return inside and (not names or str(path.relative_to(subtree)) in names)

    def regular(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        taken = member.isfile() and wanted(member.name.partition("/")[2])
        return tarfile.data_filter(member, path) if taken else None

    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(work, [name for name in wheel.namelist() if wanted(name)])  # noqa: S202
            return work / subtree
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter=regular)  # noqa: S202 - the filter refuses what leads outside
        return next(work.glob("*"), work) / subtree
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"{archive.name} is damaged: {error}", help=f"delete {archive} and fetch again") from error
