"""Results of a tree's own build for arch lists, before and after the patches; no compiler is needed."""

import ast
import re
import tempfile
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from packaging.version import Version

from fp4patch import adapters
from fp4patch.adapters.kept import BuildFiles, KeptResults
from fp4patch.adapters.result import ON_AARCH64, BuildRow, JitTargets
from fp4patch.catalog.identify import Identified
from fp4patch.catalog.patch import BuildCheck, Patch
from fp4patch.catalog.target import Build
from fp4patch.core.arch import Arch, Reach
from fp4patch.core.cuda import refused
from fp4patch.core.errors import ToolchainError
from fp4patch.core.lex_error import LexError
from fp4patch.core.process import processors
from fp4patch.core.store import Store
from fp4patch.edits.cmake import parse
from fp4patch.edits.language import language
from fp4patch.edits.operation import Condition
from fp4patch.proof.mutants import Mutant, mutants
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
    loose: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Those of them that have a mutant for which every check passes."""


def check_id(patch: Patch, check: BuildCheck | Condition) -> str:
    """Return the name of a check in reports: ``vllm/arch-lists``."""
    return f"{patch.target}/{check.name}"


@dataclass(frozen=True)
class _Judge:
    """What is expected of a patched build for each list, and what the pristine one gave."""

    build: Build
    checks: Sequence[tuple[Patch, BuildCheck]]
    old: Mapping[tuple[str, str], BuildRow]
    like: Mapping[str, str]
    """Of each list that was made of another one, that one: the same is expected of both."""

    def checks_of(self, archs: str) -> list[tuple[Patch, BuildCheck]]:
        """Return the checks that a list is for."""
        stated = self.like.get(archs, archs)
        return [(p, check) for p, check in self.checks if stated in (*check.same, *check.reaches, *check.keeps)]

    def sides(self, check: BuildCheck, cuda: str, archs: str, new: BuildRow) -> tuple[BuildRow, BuildRow]:
        """Return the rows of the sources that a check is about, pristine and patched."""
        kernels = check.kernels or self.build.kernels
        return self.old[cuda, archs].of(kernels, self.build), new.of(kernels, self.build)

    def mistakes(self, patch: Patch, check: BuildCheck, cuda: str, archs: str, new: BuildRow) -> str:
        """Return what is not as a check expects for a list; empty if all is."""
        others = "|".join(other.kernels for of, other in self.checks if of is not patch and other.kernels)
        wrong = _mistakes(check, self.like.get(archs, archs), others, *self.sides(check, cuda, archs, new))
        is_asked = check.reaches and not check.kernels and self.like.get(archs, archs) not in check.same
        if not wrong and is_asked and not new.stops and _is_known(cuda, archs):
            wrong = [*_left_out(self.old[cuda, _reference(archs)], archs, new)]
        return "; ".join(wrong)

    def changes(self, cuda: str, archs: str, new: BuildRow) -> str:
        """Return the first part of a build that was changed, and that no patch states; empty if there is none."""
        stated = [change for _, check in self.checks for change in check.changes]
        return _changes(self.old[cuda, _reference(archs) if _is_known(cuda, archs) else archs], new, stated)

    def is_wrong(self, cuda: str, archs: str, new: BuildRow) -> bool:
        """Return whether a check fails for a row."""
        found = (self.mistakes(patch, check, cuda, archs, new) for patch, check in self.checks_of(archs))
        return any(found) or bool(self.changes(cuda, archs, new))


def evaluate(pristine: SourceView, tree: Identified, patches: Sequence[Patch], store: Store | None = None) -> Evaluated:
    """Evaluate the build of the pristine and of the patched tree for the lists that the patches name.

    ``store`` has what was evaluated before; then the view of the pristine tree is one of the same tree.
    """
    build = tree.target.build
    checks = [(patch, check) for patch in patches for check in patch.builds]
    if build is None or not checks:
        return Evaluated()
    lists = dict.fromkeys(archs for _, check in checks for archs in (*check.same, *check.reaches, *check.keeps))
    like = _made(build, [check for _, check in checks], lists)
    own = {path for path in pristine.overlay if language(path) in ("cmake", "python")}
    files = BuildFiles(tree.root, build, store) if store else None
    with tempfile.TemporaryDirectory(prefix="fp4patch-builds-") as scratch:
        before = Path(scratch) / "pristine"
        _link(pristine.root.resolve(), before, pristine.overlay)
        try:
            kept = files.over(pristine.overlay) if files else None
            asked = [
                *((cuda, archs) for cuda in _releases(build) for archs in lists),
                *((_releases(build)[-1], archs) for archs in like),
            ]
            compared = dict.fromkeys((cuda, of) for cuda, archs in asked for of in (archs, _reference(archs)))
            old = _evaluated(build, before, [*compared], kept=kept)
            new = _evaluated(build, tree.root, asked, traced=own, kept=files.over({}) if files else None)
            judge = _Judge(build, checks, old, like)
            fails = any(judge.is_wrong(*question, row) for question, row in new.items())
            loose = {
                path: _loose(judge, tree.root, path, pristine.overlay[path] or b"", new, files, Path(scratch))
                for path in own
                if not fails and any(path in row.ran for row in new.values())
            }
        except ToolchainError as error:
            aside = (SetAside(check_id(patch, check), str(error)) for patch, check in checks)
            return Evaluated(aside=tuple(aside))
    changes = {(cuda, archs): judge.changes(cuda, archs, row) for (cuda, archs), row in new.items()}
    results: list[BuildResult] = []
    for patch, check in checks:
        for cuda, archs in (asked for asked in new if (patch, check) in judge.checks_of(asked[1])):
            was, now = judge.sides(check, cuda, archs, new[cuda, archs])
            wrong = judge.mistakes(patch, check, cuda, archs, new[cuda, archs])
            detail = wrong or changes.pop((cuda, archs), "")  # the first check of a list names what else was changed
            results.append(BuildResult(check_id(patch, check), cuda, archs, _said(was), _said(now), detail))
    unrecorded = _unrecorded(tree.target.name, [*old.values(), *new.values()])
    return Evaluated(tuple(results), tuple(unrecorded), _ran(new.values()), loose)


def _ran(rows: Iterable[BuildRow]) -> dict[str, frozenset[int]]:
    """Return the lines that any of the rows executed, by file."""
    ran: dict[str, frozenset[int]] = {}
    for row in rows:
        for path, lines in row.ran.items():
            ran[path] = ran.get(path, frozenset()) | lines
    return ran


def _loose(
    judge: _Judge,
    root: Path,
    path: str,
    before: bytes,
    rows: Mapping[tuple[str, str], BuildRow],
    files: BuildFiles | None,
    scratch: Path,
) -> frozenset[int]:
    """Return the executed lines of a build file that have a mutant for which no check fails.

    A mutant is evaluated for the lists for which its line was executed, but no more than some; those that a check
    reaches first.
    """
    after = (root / path).read_text(encoding="utf-8", errors="replace")
    spoken = language(path)
    spans = executed_lines(path, after, _ran(rows.values()).get(path, ()))
    named = {archs for _, check in judge.checks for archs in check.reaches}
    order = sorted(rows, key=lambda asked: asked[1] not in named)

    def survives(numbered: tuple[int, Mutant]) -> bool:
        number, mutant = numbered
        own = {line for span in spans if mutant.line in span for line in span}
        asked = [question for question in order if own & rows[question].ran.get(path, frozenset())][:_MOST]
        view, overlay = scratch / f"{PurePosixPath(path).name}-{number}", {path: mutant.text.encode()}
        _link(root.resolve(), view, overlay)
        kept = files.over(overlay) if files else None
        for at in range(0, len(asked), _AT_ONCE[judge.build.kind]):
            made = _evaluated(judge.build, view, asked[at : at + _AT_ONCE[judge.build.kind]], kept=kept)
            if any(judge.is_wrong(*question, row) for question, row in made.items()):
                return False
        return True

    executed = {line for span in spans for line in span}
    try:
        tried = [one for one in mutants(spoken, before.decode("utf-8", "replace"), after) if one.line in executed]
    except (LexError, SyntaxError):
        return frozenset(executed)
    first, rest = tried[:_MUTANTS], tried[_MUTANTS:]
    with ThreadPoolExecutor(processors()) as pool:
        alive = zip(first, pool.map(survives, enumerate(first)), strict=True)
        return frozenset(mutant.line for mutant, is_alive in [*alive, *((one, True) for one in rest)] if is_alive)


_MOST = 6
"""Lists for which a mutant is evaluated. Those of vLLM's native that a check finds at all are found with the fourth."""
_MUTANTS = 400
"""Mutants of a file that are evaluated; vLLM's have about 60. Lines of further ones count as not judged."""
_AT_ONCE = {"cmake": 1, "jit": 4}
"""Lists for which a mutant is evaluated at once: a Python takes longer to start than to evaluate one."""


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


def _releases(build: Build) -> list[str]:
    """Return the CUDA releases with which a build is evaluated."""
    return [*dict.fromkeys((*(_EARLIER if build.kind == "jit" else ()), *build.cuda, _LATER))]


def _made(build: Build, checks: Sequence[BuildCheck], lists: Collection[str]) -> dict[str, str]:
    """Return lists that no check names, each with the one of which the same is expected: a check's longest, in the
    other order, of more than two with Thor between, and with PTX."""
    made: dict[str, str] = {}
    for check in checks:
        if longest := max(check.reaches, key=lambda archs: archs.count(";"), default=""):
            turned = longest.split(";")[::-1]
            is_plain = build.kind == "cmake" and not longest.endswith(")")
            more = [_THOR] if is_plain and len(turned) > 2 else []
            made[";".join([*turned[:-1], *more, turned[-1]])] = longest
            made |= {f"{longest}+PTX": longest} if is_plain else {}
    return {archs: stated for archs, stated in made.items() if archs not in lists}


_THOR = "11.0a"
"""No list of a check has it beside 12.1: CUDA 12.9, with which these are evaluated, too, has another name for it."""


def _evaluated(
    build: Build,
    root: Path,
    asked: Sequence[tuple[str, str]],
    *,
    traced: Collection[str] = (),
    kept: KeptResults | None,
) -> Mapping[tuple[str, str], BuildRow]:
    """Return the result of a build for each CUDA release and arch list."""
    written = [(cuda, archs.replace(";", build.separator)) for cuda, archs in asked]
    rows = adapters.evaluate(root, build, written, parts=True, traced=traced, kept=kept)
    return dict(zip(asked, rows, strict=True))


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
    is_known, stopped = _is_known(new.cuda, archs), _stopped(new)
    if not alike and (archs in check.same or not (is_known or (stopped and stopped >= _stopped(old)))):
        wrong.append("it is not as before")
    more = {arch for source, ptx in new.ptx.items() for arch in ptx if arch not in old.ptx.get(source, ())}
    if old.code and more:  # a build that compiled nothing has no PTX to keep to
        wrong.append(f"PTX of {', '.join(sorted(more))} that was not there")
    if stopped and not (stopped <= _stopped(old) or old.error):
        return [*wrong, "it stops, and did not before"]
    if new.stops:
        return wrong
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


def _left_out(old: BuildRow, archs: str, new: BuildRow) -> Iterator[str]:
    """Yield the first source, of FP4 or not, without code for a GPU of SM12x in a list, that has some for another one
    or had in the pristine build for SM120."""
    gpus = [arch.gpu for arch in Arch.parse_list(archs, ptx=True) if arch.major == 12]
    for source, made in new.code.items():
        own = [arch for arch in map(Arch.parse, made) if arch.major == 12]
        if own or any(Arch.parse(arch).major == 12 for arch in old.code.get(source, ())):
            lost = [gpu for gpu in gpus if not any(arch.runs_on(gpu) for arch in own)]
            if lost:
                yield f"{source} has no code for {lost[0]}"
                return


def _stopped(row: BuildRow) -> frozenset[Arch | None]:
    """Return the GPUs on whose machine a build stops, or None for all of them."""
    return frozenset((None,)) if row.stops else frozenset(gpu for gpu, there in row.on.items() if there.stops)


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
