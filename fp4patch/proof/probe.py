"""Compile a probe against one view of a source tree.

A view is a tree with some files replaced, so the pristine side needs no second checkout: its include folders are
copied in full, and only when something must be compiled. Putting a folder of pristine headers in front of the tree's
would not do: headers include their siblings, which would still be the patched ones. Probes are never compiled with
``-lineinfo``, which changes the code's section.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fp4patch.errors import ProofError
from fp4patch.model import ProbeKind
from fp4patch.proof.cache import Cache, Dependency, Stored, key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fp4patch.model import Arch, Probe, Target
    from fp4patch.proof.toolchain import Toolchain

_STANDARD = ("-std=c++17", "-O3")
_NO_SUCH_ARCH = re.compile(r"nvcc fatal\s*: (?:Unsupported gpu architecture|Value '\S+' is not defined for option)")
_LONGEST_ERROR = 4000  # characters; a template error can be megabytes, and its beginning tells


@dataclass(frozen=True)
class SourceView:
    """A tree with these files over it; keys are POSIX paths relative to ``root``, None means *not there*."""

    root: Path
    overlay: Mapping[str, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a probe."""

    content: bytes
    """The object file: a cubin, or a host object; empty where the compiler refused."""
    log: str
    """What it said: the resource usage of ptxas, or its errors."""
    failed: bool = False
    unsupported: bool = False
    """This compiler does not know the architecture."""
    cached: bool = False


class Cancelled(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The run was stopped; no result is to be expected."""


class Runner:
    """Runs programs, each in a process group of its own, and can end all of them at once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: Sequence[str | Path], *, scratch: Path) -> tuple[int, str, str]:
        """Exit status, stdout and stderr. Intermediate files go to ``scratch``, which is the working directory."""
        with self._lock:
            if self._stopped:
                raise Cancelled
            try:
                process = subprocess.Popen(
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    cwd=scratch,
                    env=self._environ | {"TMPDIR": str(scratch), "LC_ALL": "C"},
                    start_new_session=True,
                )
            except OSError as error:
                raise ProofError(
                    f"{command[0]} does not run: {error.strerror}", help="see `fp4patch doctor`"
                ) from error
            self._running.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Cancelled
        return process.returncode, out, err

    def stop(self) -> None:
        """End every running program with its children, and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)


class Side:
    """One view while it is being compiled against: where it lies on disk, and the hashes of its files."""

    def __init__(self, view: SourceView, target: Target, scratch: Path) -> None:
        self._root = view.root.resolve()
        self._overlay = {PurePosixPath(path).as_posix(): content for path, content in view.overlay.items()}
        self._include = target.include
        self._scratch = scratch
        self._folder: Path | None = None if view.overlay else self._root
        self._lock = threading.Lock()
        self._digests: dict[str, str | None] = {}

    @property
    def root(self) -> Path:
        """The tree that this is a view of."""
        return self._root

    def folder(self) -> Path:
        """The view as a folder; where files are replaced, a copy of the include folders with them in place."""
        with self._lock:
            if self._folder is None:
                self._folder = self._materialise()
            return self._folder

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file of the view, None where there is none."""
        if path not in self._digests:
            if path in self._overlay:
                content = self._overlay[path]
                self._digests[path] = None if content is None else hashlib.sha256(content).hexdigest()
            else:
                self._digests[path] = file_digest(self._root / path)
        return self._digests[path]

    def changed_since(self, path: str, moment: float) -> bool:
        """Whether somebody wrote the tree's own file after ``moment`` (seconds of the epoch)."""
        return path not in self._overlay and _changed_since(self._root / path, moment)

    def _materialise(self) -> Path:
        copy = self._scratch / "tree"
        for include in self._include:
            if (source := self._root / include).is_dir():
                # Links are followed: a copy must not lead back into the tree.
                shutil.copytree(source, copy / include, ignore_dangling_symlinks=True, dirs_exist_ok=True)
        for path, content in self._overlay.items():
            if not any(PurePosixPath(path).is_relative_to(include) for include in self._include):
                continue
            place = copy / path
            place.unlink(missing_ok=True)
            if content is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        return copy


class Compiler:
    """Compiles probes with one toolchain, from the cache where nothing that they read has changed."""

    def __init__(
        self,
        toolchain: Toolchain,
        target: Target,
        runner: Runner,
        cache: Cache | None,
        headers: Mapping[str, Sequence[Path]] | None = None,
    ) -> None:
        self._toolchain = toolchain
        self._target = target
        self._runner = runner
        self._cache = cache
        self._headers = headers or {}
        self._outside: dict[tuple[str, str, Path | None], str | None] = {}

    def compile(self, probe: Probe, source: Path, arch: Arch, side: Side) -> Compiled:
        """A cubin for a SASS probe, an object file with host code for a HOST probe, or the compiler's refusal."""
        source = source.resolve()
        flags = self._flags(probe, arch)
        name = self._key(source, probe, flags)

        def digest(file: Dependency) -> str | None:
            return self._digest(file, side, source)

        if self._cache and (found := self._cache.find(name, digest)):
            return Compiled(found.content, found.log, cached=True)

        folder = side.folder()
        with tempfile.TemporaryDirectory(prefix="fp4patch-probe-") as scratch_name:
            scratch = Path(scratch_name)
            product, listing = scratch / "probe.out", scratch / "probe.d"
            start = time.time()
            status, out, err = self._runner.run(
                [
                    self._toolchain.nvcc,
                    *(*self._toolchain.flags, *flags),
                    *(f"-I{folder / include}" for include in self._target.include if (folder / include).is_dir()),
                    *(f"-I{place}" for place in self._behind(probe, source)),
                    *("-MD", "-MF", listing, "-o", product, source),
                ],
                scratch=scratch,
            )
            said = (out + err).replace(str(folder), str(side.root)).strip()
            if status != 0 or not product.is_file():
                unsupported = bool(_NO_SUCH_ARCH.search(said))
                said = said or f"nvcc ended with status {status} and said nothing"
                if len(said) > _LONGEST_ERROR:
                    said = said[:_LONGEST_ERROR] + "\n…"
                return Compiled(b"", said, failed=True, unsupported=unsupported)
            compiled = Compiled(product.read_bytes(), said)
            if self._cache:
                files = [self._dependency(path, folder, source) for path in _listed(listing, scratch)]
                # A file that changed meanwhile: nobody knows which of its states was compiled.
                if not any(self._changed_since(file, side, source, start) for file in files):
                    hashes = [(file, sha256) for file in files if (sha256 := digest(file)) is not None]
                    if len(hashes) == len(files):
                        self._cache.store(name, hashes, Stored(compiled.content, compiled.log))
            return compiled

    def _behind(self, probe: Probe, source: Path) -> list[Path]:
        """Include folders that come after the tree's: others' real headers, then stand-ins for the rest."""
        patch = source.parents[len(PurePosixPath(probe.source).parts) - 1]
        real = [place for name in probe.uses for place in self._headers[name]]
        return [*real, *(patch / include for include in probe.include)]

    def _flags(self, probe: Probe, arch: Arch) -> list[str]:
        kind = ["-c"] if probe.kind is ProbeKind.HOST else ["-cubin", "-Xptxas", "-v"]
        return [
            *(*kind, f"-arch={arch}", *_STANDARD, *self._target.compile),
            *(f"-D{name}={value}" for name, value in probe.defines.items()),
        ]

    def _key(self, source: Path, probe: Probe, flags: Sequence[str]) -> str:
        info = self._toolchain.info
        return key(
            *(info.nvcc, info.cicc, info.ptxas, info.host_compiler, probe.kind),
            *("flags", *flags, "include", *self._target.include, "behind", *probe.include),
            *("uses", *(str(place) for name in probe.uses for place in self._headers[name])),
            *("source", source.name, source.read_bytes()),
        )

    def _dependency(self, path: Path, folder: Path, source: Path) -> Dependency:
        """What a path in the compiler's list means on another machine, or for the other view."""
        for anchor, place in (("tree", folder), ("toolkit", self._toolchain.root), ("probe", source.parent)):
            if path.is_relative_to(place):
                return Dependency(anchor, path.relative_to(place).as_posix())
        return Dependency("file", str(path))

    def _place(self, file: Dependency, source: Path) -> Path:
        anchors = {"toolkit": self._toolchain.root, "probe": source.parent}
        return anchors.get(file.anchor, Path("/")) / file.path

    def _digest(self, file: Dependency, side: Side, source: Path) -> str | None:
        if file.anchor == "tree":
            return side.digest(file.path)
        name = (*file, source if file.anchor == "probe" else None)
        if name not in self._outside:
            self._outside[name] = file_digest(self._place(file, source))
        return self._outside[name]

    def _changed_since(self, file: Dependency, side: Side, source: Path, moment: float) -> bool:
        if file.anchor == "tree":
            return side.changed_since(file.path, moment)
        return _changed_since(self._place(file, source), moment)


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _changed_since(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime >= moment
    except OSError:
        return True


def _listed(listing: Path, base: Path) -> list[Path]:
    r"""The files in a dependency file for make: ``out : a \`` and so on, where ``\ `` is a space within a name."""
    text = listing.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    _, _, names = text.partition(" : ")
    found = (re.sub(r"\\([ #])", r"\1", name).replace("$$", "$") for name in re.findall(r"(?:\\.|[^\s\\])+", names))
    return sorted({Path(os.path.normpath(base / name)) for name in found})
