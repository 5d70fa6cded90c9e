"""Contents of compiled code: every cubin and PTX, its FP4 instructions, and the code that a GPU's driver would load.

Files are read once, forward, through a window; one fatbin at a time is in memory, and one of its cubins unpacked.
Archives inside of archives are not read, except the layers of images and what packages of conda and Debian install: no
program loads code from others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

from fp4patch.binaries import containers, device_code, image, registry, run_time
from fp4patch.binaries.answer import answer
from fp4patch.binaries.containers import Member
from fp4patch.binaries.image import Image
from fp4patch.binaries.report import BinaryFile, BinaryReport, RunTimeCompiler, Unread
from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.arch import GB10, GPUS, Arch
from fp4patch.core.errors import BinaryError, NothingCompiledError
from fp4patch.core.progress import OnProgress, Step, silent

_PLATFORMS, _USUAL = {GB10: "linux/arm64"}, "linux/amd64"
"""The platform of a GPU's own machine, and that of all others."""
_PERMISSIONS = "check its permissions"
_LARGEST_SOURCE = 1 << 22
"""Bytes of a source that are searched."""


def examine(path: Path, *, gpus: Sequence[Arch] = GPUS, progress: OnProgress = silent) -> BinaryReport:
    """Look into a wheel, package, library, executable, cubin, fatbin, directory, or the tar of an image.

    ``gpus`` are those to judge for. Raises BinaryError for a damaged file, and for one in which no code could be.
    """
    search = _Search(gpus, _Tally(progress, str(path)))
    if path.is_dir():
        search.directory(path)
        if not (search.searched or search.unread):
            help_ = "name a wheel, a library, or a package's directory"
            raise NothingCompiledError(f"{path} holds no compiled code", help=help_)
    else:
        search.tally.total = path.stat().st_size
        if not search.on_disk(path, path.name, "") and not search.unread:
            raise NothingCompiledError(
                f"{path} is not a wheel, a package, an ELF file, a cubin, a fatbin or an image's tar",
                help="name a file that holds compiled code, or a directory of such",
            )
    return _report(str(path), search)


def examine_image(reference: str, *, gpus: Sequence[Arch] = GPUS, progress: OnProgress = silent) -> BinaryReport:
    """Look into a container image by name: ``docker://host/name:tag`` in a registry, another as the engine has it.

    Nothing is unpacked to disk. Of an image in a registry only the layers for the platforms of ``gpus`` are read.
    Raises UsageError where there is no engine or no such image.
    """
    search = _Search(gpus, _Tally(progress, reference))
    left_out: tuple[str, ...] = ()
    if reference.startswith(registry.SCHEME):
        platforms = sorted({_PLATFORMS.get(gpu, _USUAL) for gpu in gpus})
        images, members, left_out = registry.read(reference, platforms)
        search.archive(members, "", images)
    else:
        with image.save(reference) as stream:
            search.archive(containers.tar(stream, reference), "")
    return _report(f"{reference} (not read: {', '.join(left_out)})" if left_out else reference, search)


def examine_wheel(
    name: str, content: IO[bytes], size: int, *, gpus: Sequence[Arch] = GPUS, progress: OnProgress = silent
) -> BinaryReport:
    """Look into a wheel that is not on the disk. Raises BinaryError for a damaged one."""
    search = _Search(gpus, _Tally(progress, name))
    with search.reading(name):
        search.members(containers.zipped(content, name), "")
    search.tally.total = size
    return _report(name, search)


def _report(source: str, search: _Search) -> BinaryReport:
    """Judge what was found. Raises BinaryError where the one thing to look into could not be read."""
    if len(search.unread) == 1 and search.searched <= 1 and not search.files:
        raise BinaryError(search.unread[0].because, help=search.unread[0].help)
    report = BinaryReport(
        source,
        search.tally.total or search.tally.done,
        search.searched,
        tuple(search.files),
        unread=tuple(search.unread),
        compilers=run_time.used(search.compilers),
        sources=search.sources or (0 if search.files else search.headers),
    )
    return replace(report, answers=tuple(answer(gpu, search.gpus, report) for gpu in search.gpus))


# --- files -----------------------------------------------------------------------------------------------------------


class _Tally:
    """Counts bytes, and reports progress."""

    def __init__(self, progress: OnProgress, name: str) -> None:
        self._progress = progress
        self.name = name
        self.done = 0
        self.total: int | None = None

    def __call__(self, read: int) -> None:
        self.done += read
        self._progress(Step(self.done if self.total is None else min(self.done, self.total), self.total, self.name))


class _Search:
    """Looks into files and the archives that hold them, and collects what it finds and what it cannot read.

    ``inside`` is what the names of an archive's members begin with: the archive's own name, unless the user named it.
    """

    def __init__(self, gpus: Sequence[Arch], tally: _Tally) -> None:
        self.gpus, self.tally = tuple(gpus), tally
        self.searched = self.sources = self.headers = 0
        self.files: list[BinaryFile] = []
        self.unread: list[Unread] = []
        self.compilers: list[RunTimeCompiler] = []

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Note what cannot be read, and go on."""
        try:
            yield
        except BinaryError as error:
            self.unread.append(Unread(name, error.message, error.help))
        except OSError as error:
            self.unread.append(Unread(name, f"cannot read {error.filename or name}: {error.strerror}", _PERMISSIONS))

    def directory(self, path: Path) -> None:
        """Look into every file of a directory that can hold code."""
        files, root = [], path.resolve()
        for file, size in containers.folder(path):
            name = file.relative_to(root).as_posix()
            with self.reading(name):
                with file.open("rb") as stream:
                    if containers.is_source(name):
                        self.source(name, stream)
                        continue
                    head = stream.read(512)
                containers.check_kind(name, head)
                if containers.kind(head):
                    files.append((file, name, size))
        self.tally.total = sum(size for _, _, size in files)
        for file, name, _ in files:
            self.on_disk(file, name, f"{name}!")

    def on_disk(self, path: Path, name: str, inside: str) -> str:
        """Look into a file, whose ``name`` is the one in the report; return its kind, empty if it can have no code."""
        kind = ""
        with self.reading(name), path.open("rb") as stream:
            kind, content = containers.opened(Member(name, path.stat().st_size, stream))
            if kind == "zip":
                self.members(containers.zipped(path, name), inside)
            elif kind == "tar":
                self.archive(containers.tar(content.stream, name), inside)
            elif kind == "deb":
                self.members(containers.debian(content.stream, name), inside)
            elif kind == "code":
                self.code(content, name, path.as_posix())
        return kind

    def source(self, name: str, stream: Readable) -> None:
        """Count a CUDA source that is about FP4; those in the directory of headers are for other programs too."""
        if containers.has_fp4(stream.read(_LARGEST_SOURCE)):
            is_header = name.endswith(".cuh") or "include/" in name
            self.headers += is_header
            self.sources += not is_header

    def members(self, members: Iterable[Member], inside: str) -> None:
        """Look into the members of an archive that are code; one that is damaged does not lose the others."""
        for member in members:
            with self.reading(inside + member.name):
                if containers.is_source(member.name):
                    self.source(member.name, member.stream)
                    continue
                kind, content = containers.opened(member)
                if kind == "code":
                    self.code(content, inside + member.name, member.name)
                elif kind == "tar" and member.name.startswith("pkg-"):  # what a package of conda installs
                    self.members(containers.tar(content.stream, member.name), inside)

    def code(self, content: Member, name: str, place: str) -> None:
        """Look into a library, executable, cubin or fatbin, which is the compiler of its ``place`` if it is one."""
        self.searched += 1
        self.tally.name = content.name
        compiler = run_time.Listening(content.stream, place) if run_time.program(place) else None
        heard = replace(content, stream=compiler or content.stream)
        found = device_code.examine(heard, self.gpus, self.tally)
        self.files += [replace(found, name=name)] if found else []
        self.compilers += [replace(compiler.compiler(self.gpus), name=name)] if compiler else []

    def archive(self, members: Iterable[Member], inside: str, images: Sequence[Image] = ()) -> None:
        """Look into a tar of files, or of images: their layers are tars, and later ones hide files of earlier ones.

        Of an image in an archive, the archive's own manifest states the layers.
        """
        layers: dict[str, tuple[_Search, list[str]]] = {}
        seen = set[str]()
        for member in members:
            seen.add(member.name)
            if member.name == image.MANIFEST:
                images = image.images(containers.opened(member)[1].stream)
                continue
            with self.reading(inside + member.name):
                kind, content = containers.opened(member)
                if kind == "tar":
                    layers[member.name] = layer, names = _Search(self.gpus, self.tally), list[str]()
                    layer.members(_noting(containers.tar(content.stream, member.name), names), "")
                else:
                    self.members([content], inside)
        if not images:
            for name, (layer, names) in layers.items():
                self.take(layer, f"{inside}{name}!", set(names), self.gpus)
        platforms = {listed.platform for listed in images}
        for number, listed in enumerate(images, 1):
            place = inside + (f"{listed.platform or f'image {number}'}!" if len(images) > 1 else "")
            missing = [Unread(name, f"the image does not contain the layer {name}") for name in listed.layers]
            self.unread += [one for one in missing if one.name not in seen]
            here = [layers[name] for name in listed.layers if name in layers]  # a layer without files is no tar
            visible = image.visible([names for _, names in here])
            gpus = [gpu for gpu in self.gpus if _is_for(gpu, listed.platform, platforms)]
            for order, (layer, _) in enumerate(here):
                self.take(layer, place, {name for number, name in visible if number == order}, gpus)

    def take(self, layer: _Search, inside: str, visible: Set[str], gpus: Sequence[Arch]) -> None:
        """Add what was found in a layer and is visible, for the GPUs in machines of its image's platform."""
        self.searched += layer.searched
        self.sources += layer.sources
        self.headers += layer.headers
        self.unread += [replace(one, name=inside + one.name) for one in layer.unread if one.name in visible]
        self.compilers += [replace(one, name=inside + one.name) for one in layer.compilers if one.name in visible]
        for file in (file for file in layer.files if file.name in visible):
            rows = tuple(row for row in file.loading if row.gpu in gpus)
            self.files.append(replace(file, name=inside + file.name, loading=rows))


def _is_for(gpu: Arch, platform: str, platforms: Set[str]) -> bool:
    """Return whether an image for a platform is the one for a GPU's machine, among those for ``platforms``."""
    own = _PLATFORMS.get(gpu, _USUAL)
    return platform == own or own not in platforms


def _noting(members: Iterable[Member], names: list[str]) -> Iterator[Member]:
    for member in members:
        names.append(member.name)
        yield member
