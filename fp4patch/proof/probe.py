"""Compile a probe against one view of a source tree, or take what was compiled of the same files before."""

import base64
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from fp4patch.catalog.probe import WITH_HOST, Probe
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.core.lex_error import LexError
from fp4patch.core.process import Runner
from fp4patch.core.store import Store, files_hash, key, source_hash
from fp4patch.cxx.tokens import Directive, Kind, lex
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import KERNEL, defined_once, kernel_of, refused_kernels
from fp4patch.proof.source_lines import HOST_WITH_LINES, WITH_LINES, SourceLines, source_lines
from fp4patch.proof.steps import Nvcc
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side

RELOCATABLE = "-rdc=true"
"""Flag after which the linker completes the code: it puts the functions of the compiler beside the kernel."""
_ENCODERS = "fp4patch_"
"""In the name of every function of an encoder that is pasted into a header: that of its namespace."""
_STANDARD = ("-std=c++17", "-O3")
# Example: nvcc fatal   : Unsupported gpu architecture
_NO_SUCH_ARCH = re.compile(r"nvcc fatal\s*: (?:Unsupported gpu architecture|Value '\S+' is not defined for option)")
# Example: ptxas a.ptx, line 9; error   : Feature 'cvt' not supported on .target
_EVERY_TIME = re.compile(r"^ptxas .*not supported on \.target|\A.*\): error: static assertion failed", re.MULTILINE)
"""Messages that end every such compilation: an instruction that the target does not have, and a static_assert."""
_ERROR = re.compile(r"^.*\b(?:error|fatal)\b[^:\n]*:", re.MULTILINE)
_LONGEST_ERROR = 4000  # characters; a template error can be megabytes, and its beginning tells


@dataclass(frozen=True)
class Compilation:
    """One probe, architecture and side: the machine code, or why there is none."""

    content: bytes = b""
    """The object file: a cubin, or a host object; empty where the compiler refused."""
    error: str = ""
    """Why the compiler refused, or why the code is not understood."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Of several kernels that are compiled together, why the assembler refused some; all others may be right."""
    cached: bool = False
    lines: SourceLines = field(default_factory=SourceLines)
    """Lines of the side's ``watched`` files; none of a host object that is not executed."""
    listing: SassListing | None = None
    """None of host code, and of an object file that was not read."""

    @property
    def unsupported(self) -> bool:
        """True if this compiler does not know the architecture."""
        return bool(_NO_SUCH_ARCH.search(self.error))


@dataclass
class Compiler:
    """Compiles probes with one toolchain; what was compiled before from the same files is taken from the store."""

    toolchain: Toolchain
    target: Target
    runner: Runner
    store: Store
    headers: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own_files = cache(_own_files)
        self._nvcc = Nvcc(self.runner)
        self._lock = threading.Lock()  # what is read once and kept, each of many threads would read for itself

    def compile(
        self, probe: Probe, source: Path, arch: Arch, side: Side, text: str = "", more: Sequence[str] = ()
    ) -> Compilation:
        """Return a cubin for a SASS probe, an object file with host code for a HOST probe, or the compiler's refusal.

        Relocatable code is linked.

        ``text`` is compiled in the place of the source, as if it were in its directory. ``more`` are further flags; a
        language standard or an optimization level takes the place of the usual one.
        """
        source = source.resolve()
        flags = self._flags(probe, arch, more)
        with self._lock:
            name = self._key(source, probe, flags, side, text)
        if kept := self.store.get(name):
            content, lines = base64.b64decode(kept["content"]), SourceLines(**kept["lines"])
            return Compilation(content, kept["error"], kept["refused"], cached=True, lines=lines)
        with tempfile.TemporaryDirectory(prefix="fp4patch-probe-") as scratch:
            built = self._built(source, probe, flags, side, text, Path(scratch))
        # Another error may be the machine's, and a message with the tree's place is another one in the next tree.
        if not built.error or (_EVERY_TIME.search(built.error) and str(side.root) not in built.error):
            encoded = base64.b64encode(built.content).decode()
            self.store.put(name, asdict(built) | {"content": encoded})
        return built

    def _built(
        self, source: Path, probe: Probe, flags: Sequence[str], side: Side, text: str, scratch: Path
    ) -> Compilation:
        folder = side.folder()
        product, written = scratch / "probe.out", scratch / "together.cu"
        preprocessed, assembly = product.with_suffix(".ii"), product.with_suffix(".s")
        if probe.kind not in WITH_HOST:
            stem = (written if text else source).stem
            preprocessed, assembly = scratch / f"{stem}.cpp1.ii", scratch / f"{stem}.ptx"
        real = [place for name in probe.uses for place in self.headers[name]]
        if text:
            written.write_text(text, encoding="utf-8")
        status, log = self._nvcc.run(
            [
                self.toolchain.nvcc,
                *self.toolchain.flags,
                *flags,
                *(f"-I{folder / include}" for include in self.target.include if (folder / include).is_dir()),
                *(f"-I{place}" for place in (*real, *_stand_ins(probe, source))),
                "-keep",
                "-keep-dir",
                scratch,
                "-o",
                product,
                *([f"-I{source.parent}", written] if text else [source]),
            ],
            scratch,
        )
        if status == 0 and RELOCATABLE in flags and probe.kind not in WITH_HOST:
            compiled_alone = product.rename(scratch / "alone.cubin")
            arch = next(flag for flag in flags if flag.startswith("-arch="))
            nvlink = self.toolchain.nvcc.with_name("nvlink")
            status, out, err = self.runner.run([nvlink, arch, compiled_alone, "-o", product], scratch=scratch)
            log += out + err
            if ours := [name for name in defined_once(compiled_alone.read_bytes()) if _ENCODERS in name]:
                status, log = 1, f"error: {ours[0]} is defined by each file that includes its header: it is not inline"
        for place, name in ((str(folder), str(side.root)), (str(source), source.name), (f"{scratch}/", "")):
            log = log.replace(place, name)
        lines = source_lines(preprocessed, assembly, folder, side.watched)
        if status == 0 and product.is_file():
            return Compilation(product.read_bytes(), lines=lines)
        log = log.strip() or f"nvcc ended with status {status} without a message"
        if first := _ERROR.search(log):
            log = log[first.start() :]  # warnings precede it, and can be megabytes too
        refused = refused_kernels(log, assembly.read_text("utf-8", "replace")) if assembly.is_file() else {}
        return Compilation(error=log[:_LONGEST_ERROR], refused=refused, lines=lines)

    def _flags(self, probe: Probe, arch: Arch, more: Sequence[str]) -> list[str]:
        kind = ["-cubin", f"-arch={arch}", *WITH_LINES]
        if probe.kind in WITH_HOST:
            # With -arch alone nvcc would compile the device's code twice, once for its PTX.
            target = f"-gencode=arch={str(arch).replace('sm', 'compute')},code={arch}"
            kind = ["-c", target, *(HOST_WITH_LINES if probe.does else ())]
        own = (*more, *self.target.compile)
        return [
            *kind,
            *(f for f in _STANDARD if not any(m[:2] == f[:2] for m in own)),
            *own,
            *(f"-D{name}={value}" for name, value in probe.defines.items()),
        ]

    def _key(self, source: Path, probe: Probe, flags: Sequence[str], side: Side, text: str) -> str:
        """Return the name of a result: a hash of all that decides it."""
        info = self.toolchain.info
        try:
            real = (place for name in probe.uses for place in self.headers[name])
            headers = files_hash(self.toolchain.root / "include", *real)
        except OSError as error:
            raise ProofError(f"{error.filename} cannot be read: {error.strerror}") from error
        return key(
            source_hash("fp4patch.proof"),
            info.nvcc,
            info.ptxas,
            info.host_compiler,
            self.toolchain.fingerprint,
            headers,
            "include",
            *self.target.include,
            side.digest,
            *probe.include,
            "flags",
            *flags,
            "watched",
            *side.watched,
            "text",
            text,
            source.name,
            *self._own_files(source, text, tuple(_stand_ins(probe, source))),
        )


def _own_files(source: Path, text: str, stand_ins: Sequence[Path]) -> list[str | bytes]:
    """Return names and contents of a source, of the files in the directories beside it, and of what they include from
    beside themselves."""
    files = dict[Path, bytes]()
    pending = [source, *_beside(source, text.encode())]
    pending += [path for folder in stand_ins for path in folder.rglob("*")]
    while pending:
        path = pending.pop()
        if path not in files and path.is_file():
            files[path] = path.read_bytes()
            pending += _beside(path, files[path])
    return [part for path, content in sorted(files.items()) for part in (os.path.relpath(path, source), content)]


def _beside(path: Path, text: bytes) -> list[Path]:
    """Return the files that a source includes by names in quotes."""
    named = (directive.tokens for directive in _directives(text.decode("utf-8", "surrogateescape"), "include"))
    quoted = (tokens[0].text.strip('"') for tokens in named if tokens and tokens[0].kind is Kind.STRING)
    return [(path.parent / name).resolve() for name in quoted]


def _directives(text: str, name: str) -> Iterator[Directive]:
    """Yield the directives of a name; none of a text that does not end."""
    with suppress(LexError):
        yield from (directive for directive in lex(text).directives if directive.name == name)


def _stand_ins(probe: Probe, source: Path) -> list[Path]:
    """Return the include directories of a probe's own patch, which come after all others."""
    patch = source.parents[len(PurePosixPath(probe.source).parts) - 1]
    return [patch / include for include in probe.include]


def together(probes: Sequence[tuple[Probe, Path]]) -> str:
    """Return the text of one translation unit with the kernels of several probes, each in a namespace of its own.

    All that they include comes first: an include guard leaves nothing for the namespaces. Macros that a source defines
    end with it.
    """
    home = probes[0][1].parent
    texts = {source: source.read_text(encoding="utf-8") for _, source in probes}
    included = (
        text[line.start : line.stop].strip() for text in texts.values() for line in _directives(text, "include")
    )
    lines = list(dict.fromkeys(included))
    for probe, source in probes:
        macros = {KERNEL: kernel_of(probe.id, ())} | {n: v for n, v in probe.defines.items() if n not in probe.flags}
        defined = (directive.tokens[0].text for directive in _directives(texts[source], "define"))
        ended = dict.fromkeys([*macros, *defined])
        lines += [f"namespace {macros[KERNEL]}_alone {{"]
        lines += [f"#define {name} {value}" for name, value in macros.items()]
        lines += [f'#include "{os.path.relpath(source, home)}"', *(f"#undef {name}" for name in ended), "}"]
    return "\n".join([*lines, ""])
