"""Judge the machine code of the probes by the variant's rules, its recorded counts, and what upstream's code does.

Nothing is passed over: a rule that met no probe and a probe that met no rule are both problems.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Metric, Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem, Verdict, verdict_on
from fp4patch.core.wording import counted
from fp4patch.proof import counts
from fp4patch.proof.compile import Pair
from fp4patch.proof.counts import METRICS, Row, numbers, row_of
from fp4patch.proof.evidence import Evidence, OnRow
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import defined_once
from fp4patch.proof.probe import Compilation
from fp4patch.proof.result import Check, ProbeResult, is_same
from fp4patch.proof.subject import Subject
from fp4patch.sass.instruction import InstructionClass
from fp4patch.sass.text import CLASS_OF

_CLASS_OF_METRIC: dict[Metric, InstructionClass] = {
    "branches": InstructionClass.BRANCH,
    "local": InstructionClass.LOCAL,
    "f64": InstructionClass.F64,
}

# What a kernel does for others: it writes where they see it, or calls what may. STL and STS are for itself.
_ACTS = frozenset(
    (
        "ATOM",
        "ATOMG",
        "CALL",
        "RED",
        "REDAS",
        "REDG",
        "ST",
        "STAS",
        "STG",
        "SUATOM",
        "SURED",
        "SUST",
        "UBLKCP",
        "UBLKRED",
        "UREDGR",
        "USTGR",
        "UTMAREDG",
        "UTMASTG",
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


def by_rules(evidence: Evidence) -> Iterator[OnRow]:
    """Yield each condition of the variant's rules; of what has no machine code, that it compiles or why not."""
    for pair in evidence.compiled.pairs:
        rules = [rule for rule in evidence.subject.rules if concerns(rule, pair.probe, pair.arch)]
        before, after = pair.before.listing, pair.after.listing
        for check in judge(rules, before, after) if after else _unread(pair.probe, pair.before, pair.after):
            yield OnRow(pair.probe.id, pair.arch, check)


def by_counts(evidence: Evidence) -> Iterator[OnRow]:
    """Yield the comparison of changed code with the variant's recorded counts, where it has some."""
    for pair in evidence.compiled.pairs:
        row = _recorded(evidence.subject, pair)
        if row and pair.after.listing and not pair.identical:
            yield OnRow(pair.probe.id, pair.arch, counts.check(row, pair.after.listing))


def by_effects(evidence: Evidence) -> Iterator[OnRow]:
    """Yield a failure for each effect of changed code that upstream's code does not have."""
    pristine: dict[str, list[SassListing]] = {}
    for pair in evidence.compiled.pairs:
        if pair.before.listing:
            pristine.setdefault(pair.probe.id, []).append(pair.before.listing)
    for pair in evidence.compiled.pairs:
        if pair.after.listing and not pair.identical:
            found = effects(pair.after.listing, pristine.get(pair.probe.id, ()))
            yield from (OnRow(pair.probe.id, pair.arch, check) for check in found)


def missing(evidence: Evidence) -> tuple[Problem, ...]:
    """Return the problems of missing checks. Where the variant changes nothing, that no probe ran is no mistake."""
    subject = evidence.subject
    ran = [(pair.probe, pair.arch) for pair in evidence.compiled.pairs]
    if not (ran or subject.folded.applied):
        return ()
    aside = [probe for probe, _ in subject.probes.aside]
    return missing_checks(subject.rules, ran, subject.probes.archs, aside, builds=bool(evidence.builds))


def rows(evidence: Evidence, checks: Mapping[tuple[str, Arch], Sequence[Check]]) -> tuple[ProbeResult, ...]:
    """Return a row for each probe and architecture that was compiled, with its checks."""
    return tuple(
        ProbeResult(
            probe=pair.probe.id,
            title=pair.probe.title,
            arch=pair.arch,
            kind=pair.probe.kind,
            before=pair.before.listing,
            after=pair.after.listing,
            checks=tuple(checks.get((pair.probe.id, pair.arch), ())),
            error=pair.after.error or pair.before.error,
            cached=pair.after.cached and (pair.before.cached or pair.probe.kind is ProbeKind.HOST),
            forced=any("FORCE" in name for name in pair.probe.defines),
            unrecorded=_is_unrecorded(evidence.subject, pair),
        )
        for pair in evidence.compiled.pairs
    )


def _recorded(subject: Subject, pair: Pair) -> Row | None:
    return row_of(subject.records, subject.toolchain.info.nvcc, pair.probe.id, pair.arch)


def _is_unrecorded(subject: Subject, pair: Pair) -> bool:
    """Return whether nothing says how long changed code may be.

    A whole source file is upstream's code for the most part, and grows with it.
    """
    is_changed = bool(pair.after.listing) and not pair.identical
    return is_changed and pair.probe.kind is ProbeKind.SASS and not _recorded(subject, pair)


def _unread(probe: Probe, before: Compilation, after: Compilation) -> tuple[Check, ...]:
    """Return the checks of host code, and of code that was not compiled or not understood."""
    nothing = "without machine code nothing can be judged"
    if after.unsupported:
        return (Check("this compiler supports the architecture", nothing, Verdict.UNSUPPORTED, "no"),)
    if after.error:
        pristine = ", and the pristine source neither" if before.error else ", though the pristine source does"
        return (Check("compiles", nothing, Verdict.FAIL, f"no{pristine if probe.kind is not ProbeKind.HOST else ''}"),)
    compiles = Check("compiles", "every file that includes the header has host code", Verdict.PASS, "yes")
    if probe.does or not (twice := defined_once(after.content)):  # else it has nothing but the header
        return (compiles,)
    because = "two files of a library that include the header could not be linked"
    detail = f"it has {counted(len(twice), 'function')} or variables that are not: {twice[0]}"
    return compiles, Check("what the header defines is inline", because, Verdict.FAIL, detail)


def judge(rules: Iterable[Rule], before: SassListing | None, after: SassListing) -> tuple[Check, ...]:
    """Return each condition of these rules on patched code; ``before`` is None where the pristine probe did not
    compile.

    Code without effect fails: whatever is forbidden or bounded, it has not.
    """
    checks = tuple(check for rule in rules for check in _checks(rule, before, after))
    because, detail = "code that does nothing breaks no rule", "the compiler left nothing that has an effect"
    return checks if _acts(after) else (*checks, Check("stores something", because, Verdict.FAIL, detail))


def _acts(listing: SassListing) -> bool:
    """Return whether code does anything for others."""
    return any(opcode.split(".")[0] in _ACTS for opcode in listing.opcodes)


_HARMLESS = frozenset(
    ("B2R", "BMOV", "BREAK", "BSSY", "BSYNC", "DEPBAR", "ENDCOLLECTIVE", "EXIT", "NOP", "R2B", "RPCMOV", "YIELD")
)
"""Opcodes of control that compilers emit for branches and for the results of memory: they change no other thread."""
_STATEFUL = frozenset(
    {name for name, cls in CLASS_OF.items() if cls is InstructionClass.CONTROL} - _HARMLESS | {"CCTL", "PMTRIG"}
)
"""Opcodes that signal, wait, or change the state of the machine. The executor takes some of them as nothing."""
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
"""Bytes of a store, by its modifier; 4 without one."""


def effects(patched: SassListing, pristine: Sequence[SassListing]) -> Iterator[Check]:
    """Yield a failure for each effect of patched code that the execution cannot show, and that no pristine code has.

    The pristine code is that of all targets: on one of them it may be nothing but a trap, which is no code to compare
    with.
    """
    pristine = [listing for listing in pristine if _acts(listing)]
    if not pristine:
        return
    because = "callers of upstream's code do not expect it"
    if new := _stateful(patched) - {opcode for listing in pristine for opcode in _stateful(listing)}:
        detail = f"it has {', '.join(sorted(new))}, too"
        yield Check("signals and waits as upstream's code does", because, Verdict.FAIL, detail)
    width, usual = _widest_store(patched), max(map(_widest_store, pristine))
    if width > usual:
        detail = f"it stores {width} bytes at once, and upstream's code at most {usual}"
        yield Check("needs no more alignment than upstream's code", because, Verdict.FAIL, detail)


def _stateful(listing: SassListing) -> frozenset[str]:
    """Return the opcodes that signal, wait, or change the state of the machine."""
    return _STATEFUL.intersection(opcode.partition(".")[0] for opcode in listing.opcodes)


def _widest_store(listing: SassListing) -> int:
    """Return the bytes of the widest store to global memory: its address must be a multiple of them."""
    opcodes = (opcode.split(".") for opcode in listing.opcodes)
    stores = [words for name, *words in opcodes if name in ("ST", "STG")]
    widths = (max((_WIDTHS[word] for word in words if word in _WIDTHS), default=4) for words in stores)
    return max(widths, default=0)


def missing_checks(
    rules: Sequence[Rule],
    ran: Sequence[tuple[Probe, Arch]],
    archs: Sequence[Arch],
    aside: Sequence[Probe] = (),
    *,
    builds: bool = False,
) -> tuple[Problem, ...]:
    """Return the problems of missing checks: nothing ran, or a rule or probe without a counterpart.

    ``ran`` are the pairs that were compiled, whether or not they passed. A rule whose architectures were not requested
    is set aside, and so is a rule that applies only to probes ``aside``: on another tree they run. With ``builds``, the
    tree's own build was evaluated: a target can have no probe then.
    """
    problems = []
    if not ran and (aside or not builds):
        problems.append(
            Problem(
                expected="at least one probe",
                found="none ran",
                help="the variant's patches have no probes",
            )
        )
    elif aside and all(probe.kind is ProbeKind.HOST for probe, _ in ran):
        problems.append(
            Problem(
                expected="at least one probe whose machine code is judged",
                found="all were set aside",
                help="only host code was compiled; the reasons are beside the probes that did not run",
            )
        )
    for rule in rules:
        name = f"rule for {', '.join(rule.probes)} on {', '.join(rule.arch)}"
        problems += _misspelt(rule, name)
        met = [*ran, *((probe, arch) for probe in aside for arch in archs)]
        if any(rule.is_for(arch) for arch in archs) and not any(concerns(rule, probe, arch) for probe, arch in met):
            problems.append(
                Problem(
                    expected=f"a probe to which the {name} applies",
                    found="none ran",
                    help="correct the rule in the variant's file",
                )
            )
    for name, number in Counter(f"{probe.id} on {arch}" for probe, arch in ran).items():
        if number > 1:
            problems.append(
                Problem(
                    expected=f"one probe {name}",
                    found=f"{number} of that name",
                    help="one would hide what another came to: give each a name of its own",
                )
            )
    for probe, arch in ran:
        if probe.kind is not ProbeKind.HOST and not any(concerns(rule, probe, arch) for rule in rules):
            problems.append(
                Problem(
                    expected=f"a rule for {probe.id} on {arch}",
                    found="none",
                    help="its machine code was compared and judged by nothing; add a rule to the variant's file",
                    patch=probe.patch,
                )
            )
    return tuple(problems)


def _misspelt(rule: Rule, name: str) -> Iterator[Problem]:
    """Yield a problem for each pattern that begins with the name of no opcode: what does not exist is never found."""
    for pattern in (*rule.requires, *rule.forbids):
        begins = _BEGINS.match(pattern)
        if begins and not any(opcode.startswith(begins["name"]) for opcode in CLASS_OF):
            yield Problem(
                expected=f"an instruction that matches {pattern} of the {name}",
                found="none has such a name",
                help="correct the rule in the variant's file",
            )


def _checks(rule: Rule, before: SassListing | None, after: SassListing) -> Iterator[Check]:
    has = [any(re.search(p, code.operation) for code in before.instructions) for p in rule.requires] if before else []
    if rule.identical and all(has):  # where upstream itself has what the rule requires
        detail = "not one byte of code or constants differs" if is_same(before, after) else "the code differs"
        if before is None:
            detail = "the pristine probe did not compile, so there is nothing to compare with"
        yield Check("identical", rule.because, verdict_on(is_same(before, after)), detail)
    if rule.shorter and before:  # else there is nothing to compare with
        compared = list(zip(METRICS, numbers(before), numbers(after), strict=True))
        (_, long, short), *kinds = compared
        holds = is_same(before, after) or (short < long and all(new <= old for _, old, new in kinds))
        detail = ", ".join(f"{old} → {new} {name}" for name, old, new in compared)
        yield Check("shorter", rule.because, verdict_on(holds), detail)
    for word, patterns in (("requires", rule.requires), ("forbids", rule.forbids)):
        for pattern in patterns:
            opcodes = Counter(code.opcode for code in after.instructions if re.search(pattern, code.operation))
            verdict = verdict_on(bool(opcodes) is (word == "requires"))
            yield Check(f"{word} {pattern}", rule.because, verdict, _listed(opcodes))
    for metric in rule.without:
        opcodes = Counter(code.opcode for code in after.instructions if code.cls is _CLASS_OF_METRIC[metric])
        yield Check(f"without {metric}", rule.because, verdict_on(not opcodes), _listed(opcodes))


def _listed(opcodes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(opcodes.items())) or "none"
