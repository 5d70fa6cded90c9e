"""Sources of ptxas: a toolkit of this machine, or a pinned wheel of the package index, fetched on request.

Of a wheel only ``bin/ptxas`` is kept, with its hash beside it, which is checked whenever it is used.
"""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from fp4patch.catalog.feature import ToolkitWheel, ToolkitWheels
from fp4patch.catalog.target import Archive
from fp4patch.core.cache import cache_dir, sha256
from fp4patch.core.errors import SourceError, ToolchainError, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.proof.ptxas import Assembler
from fp4patch.proof.toolchain import INSTALL, USUAL, find_program, version_of, wheel_roots
from fp4patch.sources.archive import extract_program

ALL = "all"
"""In the place of a release: the newest of each."""

_SUM = "ptxas.sha256"


def installed(
    cuda_root: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    site_packages: Sequence[Path] | None = None,
    usual: Path = USUAL,
) -> Assembler:
    """Return the ptxas of the toolkit that ``verify`` would take; neither nvcc nor a host compiler is needed.

    ToolchainError where there is none, or where the one that was named has none.
    """
    environ = os.environ if environ is None else environ
    folders = _site_packages() if site_packages is None else list(site_packages)
    if ptxas := find_program("ptxas", environ, folders, cuda_root, usual):
        return _with_disassembler(ptxas, folders, environ.get("PATH", os.defpath))
    raise ToolchainError(
        f"there is no ptxas: none in this Python's packages, on PATH or in {usual}",
        help=f"{INSTALL}, name a toolkit with --cuda-root, or fetch one with --toolkit 13.0",
    )


def chosen(pinned: ToolkitWheels, asked: Sequence[str], *, machine: str | None = None) -> list[ToolkitWheel]:
    """Return the wheels that releases such as ``13.0``, ``13.0.88`` or ``all`` name, the oldest first, each once.

    UsageError names the releases that there are.
    """
    machine = machine or platform.machine()
    own = sorted((w for w in pinned.wheels if w.machine == machine), key=lambda wheel: Version(wheel.release))
    if not own:
        raise UsageError(
            f"no toolkit is pinned for a machine of type {machine}", help="name an installed one with --cuda-root"
        )
    newest = {_minor(wheel.release): wheel for wheel in own}
    found: dict[str, ToolkitWheel] = {}
    for release in asked:
        wanted = [wheel for wheel in own if wheel.release == release]
        wanted += newest.values() if release == ALL else [w for minor, w in newest.items() if minor == release]
        if not wanted:
            raise UsageError(
                f"there is no toolkit {release!r} to fetch",
                help=f"{ALL}, {', '.join(newest)}, or in full {', '.join(wheel.release for wheel in own)}",
            )
        found |= {wheel.release: wheel for wheel in wanted}
    return sorted(found.values(), key=lambda wheel: Version(wheel.release))


def fetched(wheel: ToolkitWheel, progress: OnProgress, *, site_packages: Sequence[Path] | None = None) -> Assembler:
    """Return the ptxas of a pinned wheel, downloaded if it is not there. SourceError if that fails."""
    folder = cache_dir() / "toolkits" / wheel.sha256[:16]
    ptxas, sum_file = folder / "ptxas", folder / _SUM
    if not (ptxas.is_file() and sum_file.is_file() and sha256(ptxas) == sum_file.read_text(encoding="ascii")):
        archive = Archive(
            version=wheel.release, project=wheel.project, filename=wheel.filename, sha256=wheel.sha256, subtree=""
        )
        from fp4patch.sources.index import download  # noqa: PLC0415 - its clients take long to import

        path = download(archive, progress)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as new:
                extract_program(path, "ptxas", Path(new) / "ptxas")
                (Path(new) / _SUM).write_text(sha256(Path(new) / "ptxas"), encoding="ascii")
                # The program first: a sum without its program, or of another, is a miss.
                (Path(new) / "ptxas").replace(ptxas)
                (Path(new) / _SUM).replace(sum_file)
        except OSError as error:
            raise SourceError(
                f"cannot write {folder}: {error.strerror or error}", help="free space, or move FP4PATCH_CACHE"
            ) from error
        path.unlink(missing_ok=True)  # 40 MB, of which nothing else is wanted
    folders = _site_packages() if site_packages is None else list(site_packages)
    return _with_disassembler(ptxas, folders, os.environ.get("PATH", os.defpath))


def _with_disassembler(ptxas: Path, folders: Sequence[Path], path: str) -> Assembler:
    """Return ptxas with the first nvdisasm that is at least as new: beside it, in packages, on PATH; else none."""
    if not os.access(ptxas, os.X_OK):
        raise ToolchainError(f"there is no program {ptxas}", help=INSTALL)
    places = [ptxas.parent, *(root / "bin" for root in wheel_roots(folders))]
    tools = [tool for place in places if os.access(tool := place / "nvdisasm", os.X_OK)]
    if on_path := shutil.which("nvdisasm", path=path):
        tools.append(Path(on_path).resolve())
    wanted = _minor(version_of(ptxas))
    new_enough = (tool for tool in tools if Version(_minor(version_of(tool))) >= Version(wanted))
    return Assembler(ptxas, next(new_enough, None))


def _site_packages() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry]


def _minor(release: str) -> str:
    """Return ``13.0`` of ``13.0.88``."""
    try:
        return "{}.{}".format(*Version(release).release[:2])
    except (InvalidVersion, IndexError):
        raise ToolchainError(f"{release!r} is not the version of a toolkit", help="for example 13.0.88") from None
