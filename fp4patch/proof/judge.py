"""Judge what the probes came to by the variant's rules.

Nothing is passed over: a rule that met no probe and a probe that met no rule are both problems.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Metric, Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem, Verdict, verdict_on
from fp4patch.core.wording import counted
from fp4patch.proof import counts
from fp4patch.proof.compile import SIDES, CompiledProbes
from fp4patch.proof.counts import Records, limit_of
from fp4patch.proof.listing import SassListing
from fp4patch.proof.machine_code import defined_once
from fp4patch.proof.probe import Compilation
from fp4patch.proof.result import Check, ProbeResult, is_same
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


def judged(compiled: CompiledProbes, rules: Sequence[Rule], records: Records | None = None) -> tuple[ProbeResult, ...]:
    """Return a row for each probe and architecture that was compiled.

    ``records`` are the variant's counts; None: counts are not compared.
    """
    pristine: dict[str, list[SassListing]] = {}
    for probe, arch in compiled.pairs:
        if listing := compiled.side(probe.id, arch, "pristine").listing:
            pristine.setdefault(probe.id, []).append(listing)
    rows = []
    for probe, arch in compiled.pairs:
        before, after = (compiled.side(probe.id, arch, side) for side in SIDES)
        limit = limit_of(records or {}, compiled.request.toolchain.info.nvcc, probe.id, arch)
        own = [rule for rule in rules if concerns(rule, probe, arch)]
        row = ProbeResult(
            probe=probe.id,
            title=probe.title,
            arch=arch,
            kind=probe.kind,
            before=before.listing,
            after=after.listing,
            checks=judge(own, before.listing, after.listing) if after.listing else _unread(probe, before, after),
            error=after.error or before.error,
            cached=after.cached and (before.cached or probe.kind is ProbeKind.HOST),
            forced=any("FORCE" in name for name in probe.defines),
        )
        if after.listing and not row.identical:
            more = [counts.check(limit, after.listing)] if limit else []
            more += effects(after.listing, pristine.get(probe.id, ()))
            # A whole source file is upstream's code for the most part, and grows with it.
            unrecorded = not limit and probe.kind is ProbeKind.SASS
            row = replace(row, checks=(*row.checks, *more), unrecorded=unrecorded)
        rows.append(row)
    return tuple(rows)


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
    acts = any(opcode.split(".")[0] in _ACTS for opcode in after.opcodes)
    because, detail = "code that does nothing breaks no rule", "the compiler left nothing that has an effect"
    return checks if acts else (*checks, Check("stores something", because, Verdict.FAIL, detail))


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

    The pristine code is that of all targets: on one of them it may be nothing but a trap.
    """
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


def unjudged(
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
        problems.append(Problem("at least one probe", "none ran", "the variant's patches have no probes"))
    elif aside and all(probe.kind is ProbeKind.HOST for probe, _ in ran):
        help_ = "only host code was compiled; the reasons are beside the probes that did not run"
        problems.append(Problem("at least one probe whose machine code is judged", "all were set aside", help_))
    for rule in rules:
        name = f"rule for {', '.join(rule.probes)} on {', '.join(rule.arch)}"
        problems += _misspelt(rule, name)
        met = [*ran, *((probe, arch) for probe in aside for arch in archs)]
        if any(rule.is_for(arch) for arch in archs) and not any(concerns(rule, probe, arch) for probe, arch in met):
            expected = f"a probe to which the {name} applies"
            problems.append(Problem(expected, "none ran", "correct the rule in the variant's file"))
    for name, number in Counter(f"{probe.id} on {arch}" for probe, arch in ran).items():
        if number > 1:
            help_ = "one would hide what another came to: give each a name of its own"
            problems.append(Problem(f"one probe {name}", f"{number} of that name", help_))
    for probe, arch in ran:
        if probe.kind is not ProbeKind.HOST and not any(concerns(rule, probe, arch) for rule in rules):
            help_ = "its machine code was compared and judged by nothing; add a rule to the variant's file"
            problems.append(Problem(f"a rule for {probe.id} on {arch}", "none", help_, probe.patch))
    return tuple(problems)


def _misspelt(rule: Rule, name: str) -> Iterator[Problem]:
    """Yield a problem for each pattern that begins with the name of no opcode: what does not exist is never found."""
    for pattern in (*rule.requires, *rule.forbids):
        begins = _BEGINS.match(pattern)
        if begins and not any(opcode.startswith(begins["name"]) for opcode in CLASS_OF):
            expected = f"an instruction that matches {pattern} of the {name}"
            yield Problem(expected, "none has such a name", "correct the rule in the variant's file")


def _checks(rule: Rule, before: SassListing | None, after: SassListing) -> Iterator[Check]:
    has = [any(re.search(p, code.operation) for code in before.instructions) for p in rule.requires] if before else []
    if rule.identical and all(has):  # where upstream itself has what the rule requires
        detail = "not one byte of code or constants differs" if is_same(before, after) else "the code differs"
        if before is None:
            detail = "the pristine probe did not compile, so there is nothing to compare with"
        yield Check("identical", rule.because, verdict_on(is_same(before, after)), detail)
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
