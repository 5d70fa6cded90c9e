"""Rules that hold for the machine code of a patched tree, as text for the variant's TOML file.

They state what the compiler emits now: which conversions and matrix instructions are there, which of those that another
target or the pristine tree has are not, and bounds of the counts. A person decides whether that is what the variant
promises, and writes the reason.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from fp4patch.catalog.probe import ProbeKind
from fp4patch.catalog.rule import Metric, Rule
from fp4patch.catalog.toml_text import table
from fp4patch.proof.instruction import InstructionClass, SassListing
from fp4patch.proof.judge import metric
from fp4patch.proof.result import ProbeResult, VerifyReport

_MARGIN = 100 / 85
"""Bounds are above the counts by as much as those of the shipped variants: 15 to 20%."""
_NARROW = re.compile(r"U?E[0-9]M[0-9]|E8")
"""Modifier of an instruction that names a number format."""
_BOUNDED: tuple[Metric, ...] = ("instructions", "branches", "local", "f64")


def rules(report: VerifyReport) -> tuple[Rule, ...]:
    """Return rules for each probe of a report that was compiled, one for the targets on which the same holds."""
    found = (one for one in report.results if one.kind is not ProbeKind.HOST and one.after)
    return tuple(
        rule for _, results in groupby(found, key=lambda one: one.probe) for rule in _of_probe(list(results), report)
    )


def unsuggested(report: VerifyReport) -> tuple[ProbeResult, ...]:
    """Return the results without machine code, for which no rule can be suggested."""
    return tuple(one for one in report.results if one.error and not one.after)


def document(suggested: Iterable[Rule]) -> str:
    """Return rules as tables of a variant's file."""
    return "\n".join(f"[[rules]]\n{table(_entry(rule))}" for rule in suggested)


def _entry(rule: Rule) -> dict[str, object]:
    keys = ("probes", "arch", "because", "identical", "requires", "forbids", "max")
    return {key: value for key in keys if (value := getattr(rule, key))}


def _of_probe(results: Sequence[ProbeResult], report: VerifyReport) -> list[Rule]:
    """Return the rules for one probe: its targets are together if they have the same classes of instructions."""
    listings = [listing for one in results for listing in (one.before, one.after) if listing]
    known = set().union(*map(_patterns, listings))
    groups: dict[tuple[bool, tuple[str, ...]], list[ProbeResult]] = {}
    for one in results:
        assert one.after is not None
        same = one.diff is not None and one.diff.identical
        groups.setdefault((same, tuple(sorted(_patterns(one.after)))), []).append(one)
    return [
        Rule(
            probes=(results[0].probe,),
            arch=tuple(str(one.arch) for one in group),
            because=_because(code, report),
            identical=same,
            requires=present,
            forbids=tuple(sorted(known - {*present})),
            max={name: round(max(metric(one, name) for one in code) * _MARGIN) for name in _BOUNDED},
        )
        for (same, present), group in groups.items()
        for code in ([one.after for one in group if one.after],)
    ]


def _patterns(listing: SassListing) -> set[str]:
    """Return patterns of the conversions to and from narrow formats, and of the matrix instructions, of a listing."""
    found = set()
    for one in listing.instructions:
        name, *modifiers = one.opcode.split(".")
        if one.cls is InstructionClass.MMA:
            found.add(rf"^{name}\.")
        elif one.cls in (InstructionClass.FP4, InstructionClass.CONVERT):
            found |= {rf"^{name}\..*\b{part}\b" for part in modifiers if _NARROW.fullmatch(part)}
    return found


def _because(listings: Sequence[SassListing], report: VerifyReport) -> str:
    """Return the counts, with what they were measured on."""
    counts = sorted({(metric(one, "instructions"), metric(one, "branches")) for one in listings})
    shown = " or ".join(f"{instructions} instructions and {branches} branches" for instructions, branches in counts)
    return f"{shown}, by nvcc {report.toolchain.nvcc} on {report.target} {report.version}"
