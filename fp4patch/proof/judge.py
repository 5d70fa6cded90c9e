"""Judge what the probes came to by the variant's rules.

Nothing is passed over: a rule that met no probe and a probe that met no rule are both problems.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple, Self

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Metric, Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem, Verdict
from fp4patch.core.wording import counted
from fp4patch.proof import counts
from fp4patch.proof.compile import SIDES, CompiledProbes
from fp4patch.proof.counts import Counts, Records, limit_of
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import defined_once
from fp4patch.proof.probe import Compilation
from fp4patch.proof.result import ProbeResult, is_same
from fp4patch.proof.verdict import Check
from fp4patch.sass.instruction import InstructionClass
from fp4patch.sass.text import CLASS_OF

_CLASS_OF_METRIC: dict[Metric, InstructionClass] = {
    "branches": InstructionClass.BRANCH,
    "local": InstructionClass.LOCAL,
    "f64": InstructionClass.F64,
}
_WORDS: dict[Metric, str] = {"branches": "branches", "local": "local memory", "f64": "double precision"}

# What a kernel does for others: it writes where they see it, or calls what may. STL and STS are for itself.
_ACTS = frozenset(
    (
        *("ATOM", "ATOMG", "CALL", "RED", "REDAS", "REDG", "ST", "STAS", "STG", "SUATOM", "SURED", "SUST"),
        *("UBLKCP", "UBLKRED", "UREDGR", "USTGR", "UTMAREDG", "UTMASTG"),
    )
)
_BEGINS = re.compile(r"\^(?P<name>\w+?)(?=\w[*?{]|\W|$)")
"""First letters of an opcode, according to a rule's pattern."""


def concerns(rule: Rule, probe: Probe, arch: Arch) -> bool:
    """Return whether a rule applies to this probe's machine code on this architecture."""
    return (
        probe.kind is not ProbeKind.HOST
        and any(fnmatchcase(probe.id, pattern) for pattern in rule.probes)
        and rule.is_for(arch)
    )


def judged(
    compiled: CompiledProbes, rules: Sequence[Rule], records: Records | None = None, compiler: str = ""
) -> tuple[ProbeResult, ...]:
    """Return a row for each probe and architecture that was compiled.

    ``records`` are the variant's counts, and ``compiler`` the version that compiled; None: counts are not compared.
    """
    pristine: dict[str, list[SassListing]] = {}
    for probe, arch in compiled.pairs:
        if listing := compiled.side(probe.id, arch, "pristine").listing:
            pristine.setdefault(probe.id, []).append(listing)
    known = {name: Effects.of(*listings) for name, listings in pristine.items()}
    rows = []
    for probe, arch in compiled.pairs:
        before, after = (compiled.side(probe.id, arch, side) for side in SIDES)
        limit = limit_of(records or {}, compiler, probe.id, arch)
        row = _row(probe, arch, before, after, [rule for rule in rules if concerns(rule, probe, arch)], limit)
        rows.append(replace(row, checks=(*row.checks, *effects(row, known.get(probe.id)))))
    return tuple(rows)


def _row(
    probe: Probe, arch: Arch, before: Compilation, after: Compilation, rules: Sequence[Rule], limit: Counts | None
) -> ProbeResult:
    nothing = "without machine code nothing can be judged"
    unrecorded = False
    if after.unsupported:
        checks: tuple[Check, ...] = (
            Check("this compiler supports the architecture", nothing, Verdict.UNSUPPORTED, "no"),
        )
    elif after.error:
        detail = "no, and the pristine source neither" if before.error else "no, though the pristine source does"
        checks = (Check("compiles", nothing, Verdict.FAIL, detail),)
    elif probe.kind is ProbeKind.HOST:
        because = "every file that includes the header compiles it"
        checks = (Check("compiles, host code included", because, Verdict.PASS, "yes"),)
        if not probe.does and (twice := defined_once(after.content)):  # a probe that has nothing but the header
            because = "two files of a library that include the header could not be linked"
            detail = f"it has {counted(len(twice), 'function')} or variables that are not: {twice[0]}"
            checks += (Check("what the header defines is inline", because, Verdict.FAIL, detail),)
    else:
        assert after.listing is not None, "code without a listing has an error"
        checks = judge(rules, before.listing, after.listing)
        if not is_same(before.listing, after.listing):
            checks += (counts.check(limit, after.listing),) if limit else ()
            # A whole source file is upstream's code for the most part, and grows with it.
            unrecorded = limit is None and probe.kind is ProbeKind.SASS
    return ProbeResult(
        probe=probe.id,
        title=probe.title,
        arch=arch,
        kind=probe.kind,
        before=before.listing,
        after=after.listing,
        checks=checks,
        error=after.error or before.error,
        cached=after.cached and (before.cached or probe.kind is ProbeKind.HOST),
        defines=probe.defines,
        unrecorded=unrecorded,
    )


def judge(rules: Iterable[Rule], before: SassListing | None, after: SassListing) -> tuple[Check, ...]:
    """Return each condition of these rules on patched code; ``before`` is None where the pristine probe did not
    compile.

    Code without effect fails: whatever is forbidden or bounded, it has not.
    """
    checks = tuple(check for rule in rules for check in _checks(rule, before, after))
    acts = any(instruction.opcode.split(".")[0] in _ACTS for instruction in after.instructions)
    return checks if acts else (*checks, _IDLE)


_HARMLESS = frozenset(
    ("B2R", "BMOV", "BREAK", "BSSY", "BSYNC", "DEPBAR", "ENDCOLLECTIVE", "EXIT", "NOP", "R2B", "RPCMOV", "YIELD")
)
"""Opcodes of control that compilers emit for branches and for the results of memory: they change no other thread."""
_STATEFUL = {name for name, cls in CLASS_OF.items() if cls is InstructionClass.CONTROL} - _HARMLESS | {"CCTL", "PMTRIG"}
"""Opcodes that signal, wait, or change the state of the machine. The executor takes some of them as nothing."""
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
"""Bytes of a store, by its modifier; 4 without one."""


class Effects(NamedTuple):
    """What listings do to the machine and to memory that an execution does not show."""

    opcodes: frozenset[str]
    """Opcodes that signal, wait, or change the state of the machine."""
    width: int
    """Bytes of the widest store to global memory: its address must be a multiple of them."""

    @classmethod
    def of(cls, *listings: SassListing) -> Self:
        """Return those of some listings together."""
        opcodes = [code.opcode.split(".") for listing in listings for code in listing.instructions]
        widths = [
            max((_WIDTHS[part] for part in parts if part in _WIDTHS), default=4)
            for parts in opcodes
            if parts[0] in ("ST", "STG")
        ]
        return cls(frozenset(_STATEFUL.intersection(parts[0] for parts in opcodes)), max(widths, default=0))


def effects(row: ProbeResult, pristine: Effects | None) -> Iterator[Check]:
    """Yield a failure for each effect of patched code that the execution cannot show, and that no pristine code has.

    The pristine code is that of all targets: on one of them it may be nothing but a trap.
    """
    if not row.after or pristine is None or row.identical:
        return
    patched = Effects.of(row.after)
    because = "callers of upstream's code do not expect it"
    if new := patched.opcodes - pristine.opcodes:
        opcodes = ", ".join(sorted(new))
        yield Check("signals and waits as upstream's code does", because, Verdict.FAIL, f"it has {opcodes}, too")
    if patched.width > pristine.width:
        detail = f"it stores {patched.width} bytes at once, and upstream's code at most {pristine.width}"
        yield Check("needs no more alignment than upstream's code", because, Verdict.FAIL, detail)


_IDLE = Check(
    "stores something",
    "code that does nothing breaks no rule",
    Verdict.FAIL,
    "the compiler left nothing of the probe that has an effect",
)


def unjudged(
    rules: Sequence[Rule],
    ran: Sequence[tuple[Probe, Arch]],
    archs: Sequence[Arch],
    aside: Sequence[Probe] = (),
    *,
    builds: bool = False,
) -> tuple[Problem, ...]:
    """Return the problems of missing checks: nothing ran, or a rule or probe without a counterpart.

    A rule without condition or probe, and a probe without rule or name, are such problems. ``ran`` are the pairs that
    were compiled, whether or not they passed. A rule whose architectures were not requested is set aside, and so is a
    rule that applies only to probes ``aside``: on another tree they run. With ``builds``, the tree's own build
    was evaluated: a target can have no probe then.
    """
    problems = []
    if not ran and (aside or not builds):
        problems.append(Problem("at least one probe", "none ran", "the variant's patches have no probes"))
    elif aside and all(probe.kind is ProbeKind.HOST for probe, _ in ran):
        help_ = "only host code was compiled; the reasons are beside the probes that did not run"
        problems.append(Problem("at least one probe whose machine code is judged", "all were set aside", help_))
    for rule in rules:
        name = f"rule for {', '.join(rule.probes)} on {', '.join(rule.arch)}"
        if not rule.judges:
            problems.append(Problem(f"a condition in the {name}", "none", "give it identical, requires, …"))
        problems += [_unknown(pattern, name) for pattern in (*rule.requires, *rule.forbids) if not _is_known(pattern)]
        met = [*ran, *((probe, arch) for probe in aside for arch in archs)]
        if any(rule.is_for(arch) for arch in archs) and not any(concerns(rule, probe, arch) for probe, arch in met):
            known = ", ".join(sorted({probe.id for probe, _ in ran if probe.kind is not ProbeKind.HOST}))
            help_ = f"the probes are {known or 'none'}; correct the rule in the variant's file"
            problems.append(Problem(f"a probe to which the {name} applies", "none ran", help_))
    for name, number in Counter(f"{probe.id} on {arch}" for probe, arch in ran).items():
        if number > 1:
            help_ = "one would hide what another came to: give each a name of its own"
            problems.append(Problem(f"one probe {name}", f"{number} of that name", help_))
    for probe, arch in ran:
        if probe.kind is not ProbeKind.HOST and not any(concerns(rule, probe, arch) for rule in rules):
            help_ = "its machine code was compared and judged by nothing; add a rule to the variant's file"
            problems.append(Problem(f"a rule for {probe.id} on {arch}", "none", help_, probe.patch))
    return tuple(problems)


def _is_known(pattern: str) -> bool:
    """Return whether an opcode begins as the pattern requires; a pattern without an opcode is accepted."""
    begins = _BEGINS.match(pattern)
    return begins is None or any(opcode.startswith(begins["name"]) for opcode in CLASS_OF)


def _unknown(pattern: str, name: str) -> Problem:
    help_ = "what does not exist is never found; correct the rule in the variant's file"
    return Problem(f"an instruction that matches {pattern} of the {name}", "none has such a name", help_)


def _checks(rule: Rule, before: SassListing | None, after: SassListing) -> Iterator[Check]:
    def check(condition: str, holds: bool, detail: str) -> Check:
        return Check.of(condition, rule.because, holds, detail)

    if rule.identical:
        yield check("identical", is_same(before, after), _difference(before, after))

    def matching(pattern: str) -> Counter[str]:
        return Counter(code.opcode for code in after.instructions if re.search(pattern, code.operation))

    for pattern in rule.requires:
        opcodes = matching(pattern)
        yield check(f"requires {pattern}", bool(opcodes), _listed(opcodes))
    for pattern in rule.forbids:
        opcodes = matching(pattern)
        yield check(f"forbids {pattern}", not opcodes, _listed(opcodes))
    for name in rule.without:
        opcodes = Counter(code.opcode for code in after.instructions if code.cls is _CLASS_OF_METRIC[name])
        yield check(f"without {_WORDS[name]}", not opcodes, _listed(opcodes))


def _difference(before: SassListing | None, after: SassListing) -> str:
    if before is None:
        return "the pristine probe did not compile, so there is nothing to compare with"
    if is_same(before, after):
        return "not one byte of code or constants differs"
    counts = Counter(instruction.cls for instruction in after.instructions)
    counts.subtract(instruction.cls for instruction in before.instructions)
    by_class = ", ".join(f"{difference:+d} {cls}" for cls, difference in sorted(counts.items()) if difference)
    return f"the code differs: {by_class or 'in operands, scheduling or constants'}"


def _listed(opcodes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(opcodes.items())) or "none"
