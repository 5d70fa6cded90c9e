"""What is in compiled code: every cubin and PTX, the FP4 instructions in each, and what a GPU's driver would load.

Files are read once, forward, through a window; one fatbin at a time is in memory, and one of its cubins unpacked.
Results are kept by the SHA-256 of the file that was named.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fp4patch.doctor import containers, elf, fatbin, kept, ptx, words
from fp4patch.doctor.judgement import judge
from fp4patch.doctor.loading import loaded
from fp4patch.doctor.window import Window
from fp4patch.errors import BinaryError
from fp4patch.model.arch import Arch
from fp4patch.model.doctor import GPUS
from fp4patch.model.doctor_binaries import BinaryFile, BinaryReport, Fp4Code, ImageGroup, Loading, Outcome, total
from fp4patch.sources.cache import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fp4patch.doctor.containers import Member
    from fp4patch.doctor.fatbin import Entry, Unit
    from fp4patch.doctor.window import Readable


_MOST_DOCUMENTS = 1 << 26
"""Bytes that the manifests of an image's tar may have together."""


@dataclass(frozen=True)
class Step:
    """How far an examination is."""

    done_bytes: int
    """Bytes read."""
    total_bytes: int | None
    """Of so many; None where that is not known."""
    name: str
    """The file being read."""


def no_progress(step: Step) -> None:
    """Shows nothing."""


def examine(
    path: Path,
    *,
    gpus: Sequence[str] = GPUS,
    progress: Callable[[Step], None] = no_progress,
    cache: Path | None = None,
) -> BinaryReport:
    """Look into a wheel, library, executable, cubin, fatbin, folder, or the tar of an image.

    ``gpus`` are those to judge for, as ``sm_121``; ``cache`` is a folder for results, None for none.
    Raises BinaryError for a damaged file, and for one in which no code could be.
    """
    begun = time.monotonic()
    asked = tuple(Arch.parse(gpu) for gpu in gpus)
    if path.is_dir():
        files = [(file, size) for file, size in containers.folder(path) if _kind(_head(file))]
        if not files:
            raise BinaryError(f"{path} holds no compiled code", help="name a wheel, a library, or a package's folder")
    elif path.is_file():
        files = [(path, path.stat().st_size)]
        if not _kind(_head(path)):
            raise BinaryError(
                f"{path} is not a wheel, an ELF file, a cubin, a fatbin or an image's tar",
                help="name a file that holds compiled code, or a folder of such",
            )
    else:
        raise BinaryError(f"{path} does not exist", help="check the path")
    everything = sum(size for _, size in files)
    found: list[BinaryFile] = []
    searched, done, cached = 0, 0, cache is not None
    for file, size in files:
        key = kept.key(sha256(file), gpus) if cache else ""
        known = kept.find(cache, key) if cache else None
        if known is None:
            cached = False
            tally = _Tally(progress, done, everything, str(file))
            known = _one(file, size, asked, tally)
            if cache:
                kept.store(cache, key, known)
        searched += known.searched
        prefix = "" if path.is_file() else str(file.relative_to(path.resolve()))
        found += [kept.renamed(each, prefix) for each in known.files]
        done += size
        progress(Step(done, everything, str(file)))
    return _report(str(path), everything, searched, found, gpus, begun, cached=cached)


def examine_image(
    reference: str,
    *,
    gpus: Sequence[str] = GPUS,
    progress: Callable[[Step], None] = no_progress,
) -> BinaryReport:
    """Look into a container image by name, as the engine writes it to a pipe; nothing is unpacked to disk.

    Nothing is kept either: what comes is known only when it has come. Raises BinaryError where there is no engine or
    no such image.
    """
    begun = time.monotonic()
    asked = tuple(Arch.parse(gpu) for gpu in gpus)
    with containers.save(reference) as stream:
        tally = _Tally(progress, 0, None, reference)
        known = _tar(stream, reference, asked, tally)
    return _report(reference, tally.done, known.searched, list(known.files), gpus, begun, cached=False)


def _report(
    source: str, size: int, searched: int, files: list[BinaryFile], gpus: Sequence[str], begun: float, *, cached: bool
) -> BinaryReport:
    verdicts = tuple(judge(gpu, files) for gpu in gpus)
    return BinaryReport(source, size, searched, tuple(files), verdicts, time.monotonic() - begun, cached)


# --- files -----------------------------------------------------------------------------------------------------------


class _Tally:
    """Counts bytes, and says so."""

    def __init__(self, progress: Callable[[Step], None], done: int, total: int | None, name: str) -> None:
        self._progress, self.done, self._total, self.name = progress, done, total, name

    def __call__(self, read: int) -> None:
        self.done += read
        self._progress(Step(self.done if self._total is None else min(self.done, self._total), self._total, self.name))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(512)
    except OSError as error:
        raise BinaryError(f"cannot read {path}: {error.strerror}", help="check its permissions") from error


def _kind(head: bytes) -> str:
    """``zip``, ``tar``, ``code``, or nothing."""
    if containers.is_zip(head):
        return "zip"
    if containers.is_tar(head):
        return "tar"
    # ELF, a fatbin, an archive of objects, a Windows library.
    return "code" if head.startswith((b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>\n", b"MZ")) else ""


def _one(path: Path, size: int, gpus: Sequence[Arch], tally: _Tally) -> kept.Known:
    kind = _kind(_head(path))
    if kind == "zip":
        return _members(containers.wheel(path), gpus, tally)
    with path.open("rb") as stream:
        if kind == "tar":
            return _tar(stream, str(path), gpus, tally)
        file = _file(containers.Member(path.name, size, stream), gpus, tally)
        return kept.Known(1, (file,) if file else ())


def _members(members: Iterator[Member], gpus: Sequence[Arch], tally: _Tally) -> kept.Known:
    found, searched = [], 0
    for member in members:
        peeked = containers.Peeked(member.stream)
        if _kind(peeked.head) == "code":
            searched += 1
            file = _file(containers.Member(member.name, member.size, peeked), gpus, tally)
            found += [file] if file else []
    return kept.Known(searched, tuple(found))


def _tar(stream: Readable, name: str, gpus: Sequence[Arch], tally: _Tally) -> kept.Known:
    """A tar of files, or of an image: its layers are tars themselves, and later ones hide files of earlier ones."""
    documents: dict[str, bytes] = {}
    layers: dict[str, tuple[list[str], kept.Known]] = {}
    loose: list[BinaryFile] = []
    searched = 0
    for member in containers.tar(stream, name):
        peeked = containers.Peeked(member.stream)
        kind = _kind(peeked.head)
        if kind == "tar":
            names: list[str] = []
            layers[member.name] = names, _members(_noting(containers.tar(peeked, member.name), names), gpus, tally)
        elif kind == "code":
            searched += 1
            file = _file(containers.Member(member.name, member.size, peeked), gpus, tally)
            loose += [file] if file else []
        elif member.size < 1 << 22 and containers.may_describe(member.name) and peeked.head[:1] in (b"[", b"{"):
            documents[member.name] = _all(peeked)
            if sum(map(len, documents.values())) > _MOST_DOCUMENTS:
                raise BinaryError(
                    f"{name} has more manifests than any image", help="it is made to do harm: do not use it"
                )
    order = containers.layer_order(documents)
    if order is None:
        inner = [known for _, known in layers.values()]
        return kept.Known(searched + sum(k.searched for k in inner), (*loose, *chain(*(k.files for k in inner))))
    missing = [layer for layer in order if layer not in layers]
    if missing:
        raise BinaryError(f"{name} lacks the layer {missing[0]}", help="save the image again")
    seen = containers.visible([layers[layer][0] for layer in order])
    files = [
        file for number, layer in enumerate(order) for file in layers[layer][1].files if (number, file.name) in seen
    ]
    return kept.Known(sum(layers[layer][1].searched for layer in order), tuple(files))


def _all(stream: Readable) -> bytes:
    pieces = []
    while piece := stream.read(1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _noting(members: Iterator[Member], names: list[str]) -> Iterator[Member]:
    for member in members:
        names.append(member.name)
        yield member


# --- code ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Image:
    entry: Entry
    arch: Arch
    compiler: str
    code: Fp4Code

    @property
    def label(self) -> str:
        return str(self.arch) if self.entry.kind == "cubin" else f"compute_{self.arch.number}"


def _file(member: Member, gpus: Sequence[Arch], tally: _Tally) -> BinaryFile | None:
    """What a file holds; None if it holds no device code."""
    tally.name = member.name
    window = Window(member.stream, member.name, member.size, tally)
    elf.check_whole(window.peek(64), member.size, member.name)
    groups: dict[tuple[str, str, str, str], list[_Image]] = defaultdict(list)
    loads: dict[tuple[str, str, Outcome, tuple[str, ...]], list[Fp4Code]] = defaultdict(list)
    number = 0
    for unit in fatbin.units(window):
        number += 1
        images = [_image(entry, unit) for entry in unit.entries]
        for image in images:
            groups[image.entry.kind, image.label, image.compiler, image.entry.compression].append(_lighter(image))
        for gpu in gpus:
            label, outcome, code, held_by = _loading(images, gpu)
            loads[str(gpu), label, outcome, held_by].append(code)
    if not number:
        return None
    return BinaryFile(
        member.name,
        member.size,
        number,
        tuple(
            ImageGroup(*key, len(of), sum(i.entry.size for i in of), total(i.code for i in of))
            for key, of in sorted(groups.items(), key=lambda item: _order(item[1][0]))
        ),
        tuple(
            Loading(gpu, label, outcome, len(codes), total(codes), held_by)
            for (gpu, label, outcome, held_by), codes in sorted(loads.items())
        ),
    )


def _order(image: _Image) -> tuple[bool, int, int, str]:
    return image.entry.kind != "cubin", image.arch.major, image.arch.minor, image.arch.suffix


def _lighter(image: _Image) -> _Image:
    """Without the payload: a library's cubins together may not fit into memory."""
    entry = image.entry
    light = fatbin.Entry(entry.kind, entry.arch, entry.compression, entry.size, b"", entry.isa)
    return _Image(light, image.arch, image.compiler, image.code)


def _image(entry: Entry, unit: Unit) -> _Image:
    name = f"{unit.name} (fatbin at byte {unit.position})" if unit.container else unit.name
    modern = not unit.container or entry.arch.major >= fatbin.FIRST_WITH_FP4
    if entry.kind == "ptx":
        if not modern:
            return _Image(entry, entry.arch, f"PTX {entry.isa}", Fp4Code())
        text = fatbin.unpack(entry, name)
        return _Image(entry, entry.arch, ptx.compiler(text) or f"PTX {entry.isa}", ptx.scan(text))
    if entry.kind == "lto":
        return _Image(entry, entry.arch, "", Fp4Code())
    if not modern:
        return _Image(entry, entry.arch, elf.compiler(fatbin.pieces(entry, name)), Fp4Code())
    data = fatbin.unpack(entry, name)
    cubin = elf.parse(data, name)
    code = words.scan(data, cubin.functions) if cubin.arch.major >= fatbin.FIRST_WITH_FP4 else Fp4Code()
    return _Image(entry, cubin.arch, cubin.compiler, code)


def _loading(images: Sequence[_Image], gpu: Arch) -> tuple[str, Outcome, Fp4Code, tuple[str, ...]]:
    """What one GPU loads of a unit, what that comes to, and who has the FP4 code that it does not get."""
    index = loaded([(image.entry, image.arch) for image in images], gpu)
    chosen = None if index is None else images[index]
    code = chosen.code if chosen else Fp4Code()
    label = "nothing" if chosen is None else chosen.label + (" (JIT)" if chosen.entry.kind == "ptx" else "")
    holders = [image for image in images if image.code.native or image.code.software]
    if code.software:
        return label, Outcome.SOFTWARE, code, ()
    if code.native:
        return label, Outcome.NATIVE, code, ()
    held_by = tuple(dict.fromkeys(image.label for image in holders))
    if any(image.arch.major == gpu.major for image in holders):
        return label, Outcome.LOST, code, held_by
    if code.named:
        return label, Outcome.UNWRITTEN, code, held_by
    return label, Outcome.OTHER if holders else Outcome.PLAIN, code, held_by
