"""Results of a tree's own build for arch lists, before and after the patches; no compiler is needed."""

import ast
import re
import tempfile
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from packaging.version import Version

from fp4patch import adapters
from fp4patch.adapters.result import ON_AARCH64, BuildRow, JitTargets
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.patch import BuildCheck, Patch
from fp4patch.catalog.target import Build
from fp4patch.core.arch import Arch, Reach
from fp4patch.core.cuda import refused
from fp4patch.core.errors import ToolchainError
from fp4patch.core.lex_error import LexError
from fp4patch.edits.cmake import parse
from fp4patch.edits.language import language
from fp4patch.edits.operation import Condition
from fp4patch.proof.result import BuildResult, SetAside
from fp4patch.proof.view import SourceView

_LATER = "13.4"
"""A CUDA release later than those that targets name, so that a patch for certain releases alone is found."""
_EARLIER = ("12.8", "12.9")
"""Releases that a build at run time may find: the first that has SM120, and the first that has SM121."""


@dataclass(frozen=True)
class Evaluated:
    """The results of all builds of a tree's patches, and those that could not be evaluated on this machine."""

    results: tuple[BuildResult, ...] = ()
    aside: tuple[SetAside, ...] = ()
    ran: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Lines of the patched files at which the evaluation executed something, by path."""


def check_id(patch: Patch, check: BuildCheck | Condition) -> str:
    """Return the name of a check in reports: ``vllm/arch-lists``."""
    return f"{patch.target}/{check.name}"


def evaluate(pristine: SourceView, tree: Identified, patches: Sequence[Patch]) -> Evaluated:
    """Evaluate the build of the pristine and of the patched tree for the lists that the patches name."""
    build = tree.target.build
    checks = [(patch, check) for patch in patches for check in patch.builds]
    if build is None or not checks:
        return Evaluated()
    lists = dict.fromkeys(archs for _, check in checks for archs in (*check.same, *check.reaches, *check.keeps))
    with tempfile.TemporaryDirectory(prefix="fp4patch-builds-") as scratch:
        before = Path(scratch) / "pristine"
        _link(pristine.root.resolve(), before, pristine.overlay)
        try:
            old = _rows(build, before, dict.fromkeys([*lists, *map(_reference, lists)]))
            new = _rows(build, tree.root, lists, traced=True)
        except ToolchainError as error:
            aside = (SetAside(check_id(patch, check), str(error)) for patch, check in checks)
            return Evaluated(aside=tuple(aside))
    stated = [change for _, check in checks for change in check.changes]
    changes = {
        (c, a): _changes(old[c, _reference(a) if _is_known(c, a) else a], row, stated) for (c, a), row in new.items()
    }
    results: list[BuildResult] = []
    for patch, check in checks:
        others = "|".join(other.kernels for of, other in checks if of is not patch and other.kernels)
        kernels, wanted = check.kernels or build.kernels, {*check.same, *check.reaches, *check.keeps}
        for cuda, archs in (asked for asked in new if asked[1] in wanted):
            was, now = old[cuda, archs].of(kernels, build), new[cuda, archs].of(kernels, build)
            wrong = "; ".join(_mistakes(check, archs, others, was, now))
            detail = wrong or changes.pop((cuda, archs), "")  # the first check of a list names what else was changed
            results.append(BuildResult(check_id(patch, check), cuda, archs, _said(was), _said(now), detail))
    unrecorded = _unrecorded(tree.target.name, [*old.values(), *new.values()])
    files = {path for row in new.values() for path in row.ran}
    ran = {path: frozenset[int]().union(*(row.ran.get(path, ()) for row in new.values())) for path in files}
    return Evaluated(tuple(results), tuple(unrecorded), ran)


def executed_lines(path: str, text: str, ran: Collection[int]) -> list[range]:
    """Return the lines of a build file that an evaluation executed, from those at which a command or statement ran.

    Of CMake, a command with all of its lines; ``else`` and what closes a block, of which CMake says nothing, if the
    command before it or behind it ran. None of a text that is not understood.
    """
    try:
        if language(path) == "cmake":
            commands = parse(text).commands
            spans = [range(one.line, one.line + text.count("\n", one.start, one.end) + 1) for one in commands]
            known = [span.start in ran for span in spans]
            silent = [one.name in _SILENT for one in commands]
            for at in (at for at, is_silent in enumerate(silent) if is_silent and at):
                known[at] = known[at - 1]
            for at in (at for at in reversed(range(len(spans) - 1)) if silent[at]):
                known[at] = known[at] or known[at + 1]
            return [span for span, is_known in zip(spans, known, strict=True) if is_known]
        parts = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    except (LexError, SyntaxError, ValueError):
        return []
    simple = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in parts if not hasattr(one, "body")]
    return [span for span in simple if any(line in ran for line in span)] + [range(line, line + 1) for line in ran]


_SILENT = frozenset(("else", "endif", "endforeach", "endwhile", "endfunction", "endmacro"))


def _unrecorded(target: str, rows: Iterable[BuildRow]) -> Iterator[SetAside]:
    """Yield the builds of which the arch lists alone were compared: what they are made of is not known."""
    lost: dict[str, None] = {}
    for row in rows:
        if not (row.error or row.stops):
            modules = [f"{name} on {gpu}" for gpu, there in row.on.items() for name in there.modules]
            recorded = {name for name, _ in row.parts}
            lost |= dict.fromkeys(name for name in modules if name not in recorded)
            lost |= dict.fromkeys([target] if row.code and not row.parts else [])
    for name in lost:
        because = f"the sources and flags of {name} could not be recorded, and are not compared"
        yield SetAside(f"{target}/build", because)


def _rows(
    build: Build, root: Path, lists: Iterable[str], *, traced: bool = False
) -> Mapping[tuple[str, str], BuildRow]:
    """Return the results of a build by CUDA release and arch list."""
    releases = dict.fromkeys((*(_EARLIER if build.kind == "jit" else ()), *build.cuda, _LATER))
    asked = [(cuda, archs) for cuda in releases for archs in lists]
    written = [(cuda, archs.replace(";", build.separator)) for cuda, archs in asked]
    return dict(zip(asked, adapters.evaluate(root, build, written, parts=True, traced=traced), strict=True))


def _reference(archs: str) -> str:
    """Return the list for SM120 alone that stands for a list with SM121: ``12.0a`` for ``12.0a;12.1a``.

    A patched build is made of what the pristine one is made of for this list.
    """
    return ";".join(dict.fromkeys(re.sub(r"^12\.1([af]?).*", r"12.0\1", arch) for arch in archs.split(";")))


def _is_known(cuda: str, archs: str) -> bool:
    """Return whether the compiler of a CUDA release takes a list: if not, the patched build stops as the pristine."""
    return not refused(Version(cuda), Arch.parse_list(archs, ptx=True))


def _changes(old: BuildRow, new: BuildRow, stated: Sequence[str]) -> str:
    """Return the first part of a build that was changed, and that no patch states; empty if there is none."""
    if old.error or new.error:
        return ""
    found: dict[tuple[str, str], str] = {}
    for target, what in sorted(old.parts.keys() | new.parts.keys(), key=lambda part: (ON_AARCH64 in part[0], part)):
        values = [row.parts.get((target, what), ()) for row in (old, new)]
        gone, came = ([v for v in values[n] if v not in values[not n]] for n in (0, 1))
        change = f"{what} {', '.join(gone) or 'none'} -> {', '.join(came) or 'none'}"
        if (gone or came) and change not in stated:
            name = target.removeprefix(ON_AARCH64)
            on = target.removesuffix(name)  # said where the builds for both processors do not change alike
            found.setdefault((name, change), f"{on}{name or 'all targets'}: {textwrap.shorten(change, 200)}")
    first = next(iter(found.values()), "")
    return f"{first} (and {len(found) - 1} more)" if len(found) > 1 else first


def _mistakes(check: BuildCheck, archs: str, others: str, old: BuildRow, new: BuildRow) -> list[str]:
    """Return what is not as the check expects for a list. ``others`` matches the sources that checks of other patches
    are for."""
    if new.error:
        return ["it could not be evaluated"]
    wrong = []
    alike = (_said(old), old.in_part, _code(old, others)) == (_said(new), new.in_part, _code(new, others))
    is_known = _is_known(new.cuda, archs)
    if not alike and (archs in check.same or not (is_known or new.stops)):
        wrong.append("it is not as before")
    more = {arch for source, ptx in new.ptx.items() for arch in ptx if arch not in old.ptx.get(source, ())}
    if old.code and more:  # a build that compiled nothing has no PTX to keep to
        wrong.append(f"PTX of {', '.join(sorted(more))} that was not there")
    if new.stops:
        return [*wrong, "it stops, and did not before"] if not (old.stops or old.error) else wrong
    if archs in check.reaches and is_known:
        enough = {Reach.SUFFIXED, Reach.BARE} if check.kernels else {Reach.SUFFIXED}
        code = "code" if check.kernels else "code with the instruction"
        named = [arch for arch in Arch.parse_list(archs, ptx=True) if arch.major == 12]
        wrong += [f"no {code} for {arch.gpu}" for arch in named if new.reaches.get(arch.gpu) not in enough]
        wrong += [new.lacks] if new.lacks else []
        suffixed = [arch.torch for arch in named if arch.suffix and not (check.kernels or new.on)]
        wrong = wrong or [f"not for {arch}" for arch in suffixed if arch not in new.kernels]
    if archs in check.keeps and not (old.error or old.stops):
        changed = sorted(_beside(old) ^ _beside(new))
        wrong += [f"{source} is not as before for {arch}" for source, arch in changed[:1]]
    return wrong


def _code(row: BuildRow, but: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return the machine code and the PTX of each source, except for those that ``but`` matches."""
    sources = sorted(source for source in row.code.keys() | row.ptx.keys() if not but or not re.search(but, source))
    return [(source, row.code.get(source, ()), row.ptx.get(source, ())) for source in sources]


def _beside(row: BuildRow) -> set[tuple[str, str]]:
    """Return each source with each target of other GPUs than SM12x for which it has code or PTX."""
    found = {(source, arch) for of in (row.code, row.ptx) for source, archs in of.items() for arch in archs}
    return {(source, arch) for source, arch in found if Arch.parse(arch).major != 12}


def _said(row: BuildRow) -> str:
    """Return the result of a build in words; for a build at run time, for each GPU on whose machine it happens."""
    if row.error or row.stops:
        return row.error or row.stops
    if not row.on:
        return " ".join(row.kernels) or (f"{' '.join(row.in_part)}, each in part" if row.in_part else "no kernel")
    return "; ".join(f"on {gpu} {_modules(there)}" for gpu, there in sorted(row.on.items()))


def _modules(there: JitTargets) -> str:
    """Return the targets of modules compiled at run time on one GPU's machine: ``GEMM 12.1a, quantization 12.0f``."""
    return there.stops or ", ".join(f"{name} {' '.join(archs)}" for name, archs in there.modules.items())


def _link(root: Path, to: Path, overlay: Mapping[str, bytes | None]) -> None:
    """Make a view of a tree as links into it; directories with other contents are directories of their own."""
    own = {PurePosixPath(path).as_posix() for path in overlay}
    parents = {parent.as_posix() for path in own for parent in PurePosixPath(path).parents} | {"."}
    for folder in sorted(parents):
        (to / folder).mkdir(parents=True, exist_ok=True)
        if not (root / folder).is_dir():
            continue
        for entry in (root / folder).iterdir():
            name = entry.relative_to(root).as_posix()
            if name not in own and name not in parents:
                (to / name).symlink_to(entry)
    for path, content in overlay.items():
        if content is not None:
            (to / path).write_bytes(content)
