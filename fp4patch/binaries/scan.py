"""Contents of compiled code: every cubin and PTX, its FP4 instructions, and the code that a GPU's driver would load.

Files are read once, forward, through a window; one fatbin at a time is in memory, and one of its cubins unpacked.
Results are kept by the SHA-256 of the file that was named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

from fp4patch.binaries import containers, device_code, image, registry, run_time
from fp4patch.binaries.answer import Scanned, answer
from fp4patch.binaries.containers import Member
from fp4patch.binaries.image import Image
from fp4patch.binaries.report import BinaryFile, BinaryReport, RunTimeCompiler, Unread
from fp4patch.binaries.result_cache import ScannedFile, cached_result, keep_result, key_of
from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.arch import GB10, GPUS, Arch
from fp4patch.core.errors import BinaryError, NothingCompiledError
from fp4patch.core.progress import OnProgress, Step, silent
from fp4patch.core.store import sha256

_MOST_DOCUMENTS = 1 << 26
"""Bytes that the manifests of an image's tar may have together."""
_DEEPEST = 4
"""Archives inside archives that are followed."""
_PLATFORMS, _USUAL = {GB10: "linux/arm64"}, "linux/amd64"
"""The platform of a GPU's own machine, and that of all others."""
_UNPACK, _SAVE = "unpack it, and name the result", "save the image again, or pull this platform first"


def examine(
    path: Path,
    *,
    gpus: Sequence[Arch] = GPUS,
    progress: OnProgress = silent,
    cache: Path | None = None,
    driver_cuda: str = "",
) -> BinaryReport:
    """Look into a wheel, library, executable, cubin, fatbin, directory, or the tar of an image.

    ``gpus`` are those to judge for; ``cache`` is a directory for results, None for none. ``driver_cuda`` is the newest
    CUDA release that the installed driver serves.
    Raises BinaryError for a damaged file, and for one in which no code could be.
    """
    search = _Search(gpus, _Tally(progress, str(path)))
    if not path.exists():
        raise BinaryError(f"{path} does not exist", help="check the path")
    cached = False
    if path.is_dir():
        cached = _folder(path, search, cache)
        if not (search.searched or search.unread):
            help_ = "name a wheel, a library, or a package's directory"
            raise NothingCompiledError(f"{path} holds no compiled code", help=help_)
    else:
        if not containers.kind(_head(path)):
            raise NothingCompiledError(
                f"{path} is not a wheel, an ELF file, a cubin, a fatbin or an image's tar",
                help="name a file that holds compiled code, or a directory of such",
            )
        search.tally.total = path.stat().st_size
        cached = _one(path, "", search, cache)
    return _report(str(path), search, cached=cached, driver_cuda=driver_cuda)


def examine_image(
    reference: str, *, gpus: Sequence[Arch] = GPUS, progress: OnProgress = silent, driver_cuda: str = ""
) -> BinaryReport:
    """Look into a container image by name: ``docker://host/name:tag`` in a registry, another as the engine has it.

    Nothing is unpacked to disk, and nothing is kept. Of an image in a registry only the layers for the platforms of
    ``gpus`` are read. Raises UsageError where there is no engine or no such image.
    """
    search = _Search(gpus, _Tally(progress, reference))
    left_out: tuple[str, ...] = ()
    if reference.startswith(registry.SCHEME):
        platforms = sorted({_PLATFORMS.get(gpu, _USUAL) for gpu in gpus})
        members, left_out = registry.members(reference, platforms)
        search.archive(members, 0)
    else:
        with image.save(reference) as stream:
            search.archive(containers.tar(stream, reference), 0)
    source = f"{reference} (not read: {', '.join(left_out)})" if left_out else reference
    return _report(source, search, driver_cuda=driver_cuda)


def examine_wheel(
    name: str,
    content: IO[bytes],
    size: int,
    *,
    gpus: Sequence[Arch] = GPUS,
    progress: OnProgress = silent,
    driver_cuda: str = "",
) -> BinaryReport:
    """Look into a wheel that is not on the disk. Raises BinaryError for a damaged one."""
    search = _Search(gpus, _Tally(progress, name))
    search.members(containers.zipped(content, name), 1)
    search.tally.total = size
    return _report(name, search, driver_cuda=driver_cuda)


def _report(source: str, search: _Search, *, driver_cuda: str, cached: bool = False) -> BinaryReport:
    """Judge what was found. Raises BinaryError where the one thing to look into could not be read."""
    if len(search.unread) == 1 and search.searched <= 1 and not search.files:
        raise BinaryError(search.unread[0].because, help=search.unread[0].help)
    own = Path(source).name
    files = tuple(replace(file, name=file.name or own) for file in search.files)
    scanned = Scanned(source, files, search.unread, search.sources, driver_cuda)
    return BinaryReport(
        source,
        search.tally.total or search.tally.done,
        search.searched,
        files,
        tuple(answer(gpu, search.gpus, scanned) for gpu in search.gpus),
        cached,
        tuple(replace(one, name=one.name or own) for one in search.unread),
        compilers=run_time.used([replace(one, name=one.name or own) for one in search.compilers]),
        sources=search.sources,
    )


def _folder(path: Path, search: _Search, cache: Path | None) -> bool:
    """Look into every file of a directory that can hold code; return whether all of them were known."""
    files, root = [], path.resolve()
    for file, size in containers.folder(path):
        name = file.relative_to(root).as_posix()
        if containers.is_source(name):
            search.sources += 1
            continue
        try:
            head = _head(file)
            containers.check_kind(name, head)
            if containers.kind(head):
                files.append((file, name, size))
        except BinaryError as error:
            search.unread.append(Unread(name, error.message, error.help))
    search.tally.total = sum(size for _, _, size in files)
    known = [_one(file, name, search, cache) for file, name, _ in files]
    return all(known)


def _one(path: Path, name: str, search: _Search, cache: Path | None) -> bool:
    """Look into one file, or find what is kept of it; return whether it was.

    ``name``: its place in a directory.
    """
    found, size = search.inner(), 0
    try:
        size = path.stat().st_size
        key = key_of(sha256(path), (*map(str, search.gpus), run_time.role(path.as_posix()))) if cache else ""
        known = cached_result(cache, key) if cache else None
        if known:
            found.searched, found.sources = known.searched, known.sources
            found.files, found.compilers = list(known.files), list(known.compilers)
            search.tally(size)
        else:
            with path.open("rb") as stream:
                found.file(containers.Member(path.name, size, stream), 0, path=path)
            if cache and not found.unread:
                keep_result(
                    cache, key, ScannedFile(found.searched, found.sources, tuple(found.files), tuple(found.compilers))
                )
    except OSError as error:
        found.unread.append(Unread("", f"cannot read {path}: {error.strerror}", "check its permissions"))
        known = None
    search.take(found, name)
    return known is not None


# --- files -----------------------------------------------------------------------------------------------------------


class _Tally:
    """Counts bytes, and reports progress."""

    def __init__(self, progress: OnProgress, name: str) -> None:
        self._progress, self.name, self.done = progress, name, 0
        self.total: int | None = None

    def __call__(self, read: int) -> None:
        self.done += read
        self._progress(Step(self.done if self.total is None else min(self.done, self.total), self.total, self.name))


def _placed(name: str, place: str) -> str:
    """Return the name of what is called ``name`` inside the archive, directory or file at ``place``."""
    return f"{place}!{name}" if name and place else name or place


class _Search:
    """Looks into files and the archives that hold them, and collects what it finds and what it cannot read.

    The name of what is inside an archive comes after the archive's; the one that the user named has none.
    """

    def __init__(self, gpus: Sequence[Arch], tally: _Tally) -> None:
        self.gpus, self.tally = tuple(gpus), tally
        self.searched = self.sources = 0
        self.files: list[BinaryFile] = []
        self.unread: list[Unread] = []
        self.compilers: list[RunTimeCompiler] = []

    def inner(self) -> _Search:
        """Return one of the same question that has found nothing yet."""
        return _Search(self.gpus, self.tally)

    def take(self, other: _Search, place: str) -> None:
        """Add what another one found below ``place``."""
        self.searched += other.searched
        self.sources += other.sources
        self.files += [replace(one, name=_placed(one.name, place)) for one in other.files] if place else other.files
        self.unread += [replace(one, name=_placed(one.name, place)) for one in other.unread]
        self.compilers += [replace(one, name=_placed(one.name, place)) for one in other.compilers]

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Note what cannot be read, and go on."""
        try:
            yield
        except BinaryError as error:
            self.unread.append(Unread(name, error.message, error.help))

    def members(self, members: Iterable[Member], depth: int) -> None:
        """Look into each member of an archive."""
        with self.reading(""):
            for member in members:
                self.member(member, depth)

    def member(self, member: Member, depth: int) -> None:
        """Look into one member of an archive; one that is damaged does not lose the others."""
        found = self.inner()
        found.file(member, depth)
        self.take(found, member.name)

    def file(self, member: Member, depth: int, *, path: Path | None = None) -> None:
        """Look into a file, by what it begins with. ``path``: where it is, if it is not inside of another."""
        place = path.as_posix() if path else member.name
        if containers.is_source(member.name):
            self.sources += 1
            return
        with self.reading(""), containers.opened(member) as (kind, content):
            if kind in ("zip", "tar", "compressed") and depth > _DEEPEST:
                raise BinaryError(f"{member.name} is an archive inside {depth} others", help=_UNPACK)
            if kind == "code":
                self.searched += 1
                self.tally.name = member.name
                compiler = run_time.Listening(content.stream, place) if run_time.role(place) else None
                heard = replace(content, stream=compiler or content.stream)
                found = device_code.examine(heard, self.gpus, self.tally)
                self.files += [replace(found, name="")] if found else []
                self.compilers += [replace(compiler.compiler(self.gpus), name="")] if compiler else []
            elif kind == "tar":
                self.archive(containers.tar(content.stream, member.name), depth)
            elif kind == "zip" and path:
                self.members(containers.zipped(path, member.name), depth + 1)
            elif kind == "zip":
                with containers.spooled(content.stream, member.name) as (file, _):
                    self.members(containers.zipped(file, member.name), depth + 1)
            elif kind == "compressed":
                raise BinaryError(f"{member.name} is compressed twice", help=_UNPACK)

    def archive(self, members: Iterator[Member], depth: int) -> None:
        """Look into a tar of files, or of images: their layers are tars, and later ones hide files of earlier ones."""
        documents: dict[str, bytes] = {}
        layers: dict[str, _Layer] = {}
        with self.reading(""):
            for member in members:
                found = self.inner()
                with found.reading(""), containers.opened(member) as (kind, content):
                    head = content.stream.head if isinstance(content.stream, containers.Peeked) else b""
                    small = member.size < 1 << 22 and head[:1] in (b"[", b"{")
                    if small and image.may_describe(member.name):
                        documents[member.name] = _all(content.stream)
                    elif kind == "tar" and depth <= _DEEPEST:
                        layers[member.name] = layer = _Layer(self.inner())
                        inside = containers.tar(content.stream, member.name)
                        layer.search.members(_noting(inside, layer), depth + 1)
                    else:
                        found.file(content, depth + 1)
                self.take(found, member.name)
                _check_size(documents, member.name)
            described = image.images(documents)
            if described is not None:
                self._images(*described, layers)
                return
        for name, layer in layers.items():
            self.take(layer.search, name)

    def _images(self, images: Sequence[Image], missing: Sequence[str], layers: Mapping[str, _Layer]) -> None:
        """Judge each image by what its container sees, and each GPU by the image for its own platform, if any."""
        self.unread += [Unread(name, "its manifest is not in this file", _SAVE) for name in missing]
        platforms = {listed.platform for listed in images}
        for number, listed in enumerate(images, 1):
            place = "" if len(images) == 1 else listed.platform if len(platforms) == len(images) else f"image {number}"
            here = [layer for layer in listed.layers if layer in layers]
            found = self.inner()
            found.unread += [
                Unread(layer, f"the image does not contain the layer {layer}", _SAVE)
                for layer in listed.layers
                if layer not in layers
            ]
            seen = image.visible([layers[layer].names for layer in here], [layers[layer].links for layer in here])
            for order, layer in enumerate(here):
                inner = layers[layer].search
                found.searched += inner.searched
                found.sources += inner.sources
                found.unread += [one for one in inner.unread if _seen(order, one.name, seen)]
                found.files += [
                    replace(
                        one, loading=tuple(row for row in one.loading if _is_for(row.gpu, listed.platform, platforms))
                    )
                    for one in inner.files
                    if _seen(order, one.name, seen)
                ]
                found.compilers += [one for one in inner.compilers if _seen(order, one.name, seen)]
            self.take(found, place)


@dataclass(frozen=True)
class _Layer:
    """A tar inside an archive: what was found in it, the names of all its files, and its hard links."""

    search: _Search
    names: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)


def _seen(order: int, name: str, seen: Set[tuple[int, str]]) -> bool:
    """Return whether a file of a layer, or the archive around it, is visible in a container."""
    ends = (at for at, letter in enumerate(name) if letter == "!")
    return not name or (order, name) in seen or any((order, name[:end]) in seen for end in ends)


def _is_for(gpu: Arch, platform: str, platforms: Set[str]) -> bool:
    """Return whether an image for a platform is the one for a GPU's machine, among those for ``platforms``."""
    own = _PLATFORMS.get(gpu, _USUAL)
    return platform == own or own not in platforms


def _check_size(documents: Mapping[str, bytes], name: str) -> None:
    if sum(map(len, documents.values())) > _MOST_DOCUMENTS:
        raise BinaryError(
            f"{name}: it has more manifests than any real image", help="do not use it: it was made to exhaust memory"
        )


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(512)
    except OSError as error:
        raise BinaryError(f"cannot read {path}: {error.strerror}", help="check its permissions") from error


def _all(stream: Readable) -> bytes:
    return b"".join(iter(partial(stream.read, 1 << 20), b""))


def _noting(members: Iterator[Member], layer: _Layer) -> Iterator[Member]:
    for member in members:
        layer.names.append(member.name)
        if member.link:
            layer.links[member.name] = member.link
        yield member
