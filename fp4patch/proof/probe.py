"""Compile a probe against one view of a source tree, or take what was compiled where nothing it reads has changed."""

import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fp4patch.catalog.manifest import data_root
from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.target import Target
from fp4patch.core.arch import Arch
from fp4patch.core.process import Runner
from fp4patch.core.store import key
from fp4patch.proof.cache import Cache, Dependency, Stored, files_read
from fp4patch.proof.machine_code import KERNEL, kernel_of
from fp4patch.proof.source_lines import HOST_WITH_LINES, WITH_LINES, SourceLines, source_lines
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import Side, changed_since, file_digest

RELOCATABLE = "-rdc=true"
"""Flag after which the linker completes the code: it puts the functions of the compiler beside the kernel."""
_STANDARD = ("-std=c++17", "-O3")
_NO_SUCH_ARCH = re.compile(r"nvcc fatal\s*: (?:Unsupported gpu architecture|Value '\S+' is not defined for option)")
_NOT_ON_TARGET = re.compile(r"^ptxas .*not supported on \.target", re.MULTILINE)
"""Message of ptxas about an instruction that the target does not have: it ends every such compilation."""
_ERROR = re.compile(r"^.*\b(?:error|fatal)\b[^:\n]*:", re.MULTILINE)
_LONGEST_ERROR = 4000  # characters; a template error can be megabytes, and its beginning tells


@dataclass(frozen=True)
class Compiled:
    """Result of compiling a probe."""

    content: bytes
    """The object file: a cubin, or a host object; empty where the compiler refused."""
    log: str
    """Messages of the compiler: the resource usage of ptxas, or its errors."""
    failed: bool = False
    unsupported: bool = False
    """This compiler does not know the architecture."""
    cached: bool = False
    lines: SourceLines = field(default_factory=SourceLines)
    """Lines of the side's ``watched`` files; none of a host object that is not executed."""


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
        self._fixed = {"toolkit": toolchain.root, "data": data_root().absolute()}
        self._outside: dict[tuple[str, str, Path | None], str | None] = {}
        self._begun = time.time()

    def compile(
        self, probe: Probe, source: Path, arch: Arch, side: Side, text: str = "", more: Sequence[str] = ()
    ) -> Compiled:
        """Return a cubin for a SASS probe, an object file with host code for a HOST probe, or the compiler's refusal.

        Relocatable code is linked.

        ``text`` is compiled in the place of the source, as if it were in its directory. ``more`` are further flags; a
        language standard or an optimization level takes the place of the usual one.
        """
        source = source.resolve()
        flags = self._flags(probe, arch, more)
        name = self._key(source, probe, flags, side, text)

        def digest(file: Dependency) -> str | None:
            return self._digest(file, side, source)

        if self._cache and (found := self._cache.find(name, digest)):
            return Compiled(found.content, found.log, failed=not found.content, cached=True, lines=found.lines)

        folder = side.folder()
        with tempfile.TemporaryDirectory(prefix="fp4patch-probe-") as scratch_name:
            scratch = Path(scratch_name)
            product, written = scratch / "probe.out", scratch / "together.cu"
            stem = (written if text else source).stem
            if probe.kind is ProbeKind.HOST:
                read, how = scratch / "probe.d", ("-MD", "-MF", scratch / "probe.d")
                preprocessed, assembly = product.with_suffix(".ii"), product.with_suffix(".s")
            else:  # -MD would run the preprocessor a second time, for the host
                read = scratch / f"{stem}.cpp1.ii"
                how = ("-keep", "-keep-dir", scratch)
                preprocessed, assembly = read, scratch / f"{stem}.ptx"
            if text:
                written.write_text(text, encoding="utf-8")
            status, said = self._run(
                [
                    self._toolchain.nvcc,
                    *(*self._toolchain.flags, *flags),
                    *(f"-I{folder / include}" for include in self._target.include if (folder / include).is_dir()),
                    *(f"-I{place}" for place in self._behind(probe, source)),
                    *(*how, "-o", product),
                    *((f"-I{source.parent}", written) if text else (source,)),
                ],
                scratch,
            )
            if status == 0 and RELOCATABLE in more and probe.kind is not ProbeKind.HOST:
                compiled_alone = product.rename(scratch / "alone.cubin")
                nvlink = self._toolchain.nvcc.with_name("nvlink")
                status, problem = self._run([nvlink, f"-arch={arch}", compiled_alone, "-o", product], scratch)
                said += problem
            said = said.replace(str(folder), str(side.root)).strip()
            refused = status != 0 or not product.is_file()
            if refused:
                said = said or f"nvcc ended with status {status} without a message"
                if first := _ERROR.search(said):
                    said = said[first.start() :]  # warnings precede it, and can be megabytes too
                if len(said) > _LONGEST_ERROR:
                    said = said[:_LONGEST_ERROR] + "\n…"
                if not (_NOT_ON_TARGET.search(said) and read.is_file()):  # it may be another time
                    return Compiled(b"", said, failed=True, unsupported=bool(_NO_SUCH_ARCH.search(said)))
            lines = source_lines(preprocessed, assembly, folder, side.watched)
            compiled = Compiled(b"" if refused else product.read_bytes(), said, failed=refused, lines=lines)
            if self._cache:
                anchors = {"tree": folder, **self._anchors(source)}  # the tree's files, in whichever view of it
                files = [Dependency.of(path, anchors) for path in files_read(read, scratch) if path != written]
                # If a file changed since we began, the compiled and the hashed contents may differ.
                if not any(self._changed_since(file, side, source) for file in files):
                    hashes = [(file, sha256) for file in files if (sha256 := digest(file)) is not None]
                    if len(hashes) == len(files):
                        self._cache.store(name, hashes, Stored(compiled.content, compiled.log, compiled.lines))
            return compiled

    def _run(self, command: Sequence[str | Path], scratch: Path) -> tuple[int, str]:
        status, out, err = self._runner.run(command, scratch=scratch)
        return status, out + err

    def _behind(self, probe: Probe, source: Path) -> list[Path]:
        """Include directories that come after the tree's: others' real headers, then stand-ins for the rest."""
        patch = source.parents[len(PurePosixPath(probe.source).parts) - 1]
        real = [place for name in probe.uses for place in self._headers[name]]
        return [*real, *(patch / include for include in probe.include)]

    def _flags(self, probe: Probe, arch: Arch, more: Sequence[str]) -> list[str]:
        kind = ["-cubin", "-Xptxas", "-v", *WITH_LINES]
        if probe.kind is ProbeKind.HOST:
            kind = ["-c", *(HOST_WITH_LINES if probe.does else ())]
        own = (*more, *self._target.compile)
        return [
            *(*kind, f"-arch={arch}", *(f for f in _STANDARD if not any(m[:2] == f[:2] for m in own))),
            *own,
            *(f"-D{name}={value}" for name, value in probe.defines.items()),
        ]

    def _key(self, source: Path, probe: Probe, flags: Sequence[str], side: Side, text: str) -> str:
        info = self._toolchain.info
        return key(
            *(info.nvcc, info.cicc, info.ptxas, info.host_compiler, self._toolchain.fingerprint, probe.kind),
            *(("linked",) if RELOCATABLE in flags else ()),
            *("flags", *flags, "include", *self._target.include, side.names(), "behind", *probe.include),
            *("watched", *side.watched),
            *("uses", *(str(place) for name in probe.uses for place in self._headers[name])),
            *(("together", text) if text else ("source", source.name, source.read_bytes())),
        )

    def _anchors(self, source: Path) -> Mapping[str, Path]:
        return {"probe": source.parent, **self._fixed}

    def _digest(self, file: Dependency, side: Side, source: Path) -> str | None:
        if file.anchor == "tree":
            return side.digest(file.path)
        name = (*file, source if file.anchor == "probe" else None)
        if name not in self._outside:
            self._outside[name] = file_digest(file.located(self._anchors(source)))
        return self._outside[name]

    def _changed_since(self, file: Dependency, side: Side, source: Path) -> bool:
        if file.anchor == "tree":
            return side.changed_since(file.path, self._begun)
        return changed_since(file.located(self._anchors(source)), self._begun)


def together(probes: Sequence[tuple[Probe, Path]]) -> str:
    """Return the text of one translation unit with the kernels of several probes, each in a namespace of its own.

    All that they include comes first: an include guard leaves nothing for the namespaces. Macros that a source defines
    end with it.
    """
    home = probes[0][1].parent
    texts = {source: source.read_text(encoding="utf-8") for _, source in probes}
    lines = list(dict.fromkeys(found[0].strip() for text in texts.values() for found in _INCLUDE.finditer(text)))
    for probe, source in probes:
        macros = {KERNEL: kernel_of(probe.id, ())} | probe.defines
        ended = dict.fromkeys([*macros, *_DEFINE.findall(texts[source])])
        lines += [f"namespace {macros[KERNEL]}_alone {{"]
        lines += [f"#define {name} {value}" for name, value in macros.items()]
        lines += [f'#include "{os.path.relpath(source, home)}"', *(f"#undef {name}" for name in ended), "}"]
    return "\n".join([*lines, ""])


_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
