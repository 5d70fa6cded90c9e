"""``fp4patch plan``: what becomes of a stack of patches on releases."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.table import Column
from rich.text import Text

from fp4patch.catalog.manifest import Catalog, load
from fp4patch.commands.options import NAME, PLACE, json_option
from fp4patch.console import Hanging, emit, folded, printable, progress_bar, show, table
from fp4patch.core.errors import EXIT_REFUSED, UsageError
from fp4patch.core.progress import OnProgress
from fp4patch.core.release import is_version
from fp4patch.core.wording import counted, shortened
from fp4patch.sources.history import Clone
from fp4patch.stack.bisect import goes, versions
from fp4patch.stack.files import of_commit, opener
from fp4patch.stack.plan import Goes, Outcome, Patch, Place, Plan, Step, plan
from fp4patch.stack.read_patches import patches_of

STYLES = {
    Outcome.APPLIES: "green",
    Outcome.MERGES: "yellow",
    Outcome.IN: "cyan",
    Outcome.NOTHING: "cyan",
    Outcome.PARTLY: "red",
    Outcome.NEEDS: "red",
    Outcome.CONFLICTS: "red",
    Outcome.NOT_FOR: "red",
}
_LABEL = 24
"""Columns of a patch's label."""
_SHOWN = 3
"""Places of each kind that are printed; the JSON document has all."""


@click.command("plan", epilog="Example: fp4patch plan patches flashinfer==0.6.4 flashinfer==0.6.10")
@click.argument("stack", type=PLACE)
@click.argument("releases", metavar="TREE|TARGET==VERSION...", nargs=-1, required=True, type=NAME)
@click.option(
    "--clone",
    "clone_at",
    metavar="DIR",
    type=PLACE,
    help="A clone of the project, with its tags: its log says what is in, and who changed a line that conflicts.",
)
@click.option("--bisect", is_flag=True, help="Find the release from which on each patch can go.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for a PATCH_STATUS.md.")
@json_option("fp4patch.stack.plan:Plan")
@click.pass_context
def plan_command(
    context: click.Context,
    stack: Path,
    releases: tuple[str, ...],
    clone_at: Path | None,
    bisect: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Tell what becomes of a STACK of patches on releases.

    A STACK is a directory of patches, or one file.

    A patch applies, applies after a merge, is in the release already, is partly in it, conflicts, needs others first,
    or is not for the release. Nothing is written. The exit status is 1 if one of them does not go on and is not in.
    """
    if markdown and as_json:
        raise UsageError("--markdown and --json are two forms of one result", help="leave one of them out")
    catalog = load()
    patches = patches_of(stack, catalog)
    clone = Clone(clone_at) if clone_at else None
    with progress_bar() as tick:
        made = planned(str(stack), patches, releases, catalog, clone, tick, bisect=bisect)
    if as_json:
        emit(made)
    elif markdown:
        click.echo(in_markdown(made), nl=False)
    else:
        show(as_text(made))
    context.exit(0 if made.settled else EXIT_REFUSED)


def planned(
    stack: str,
    patches: Sequence[Patch],
    names: Sequence[str],
    catalog: Catalog,
    clone: Clone | None,
    progress: OnProgress,
    *,
    bisect: bool = False,
) -> Plan:
    """Return the plan for the releases and trees of some names, and with ``bisect`` when each patch can go."""
    paths = frozenset(path for patch in patches for path in patch.paths)
    with opener(catalog, paths, clone, progress) as opened:
        releases = [opened(name) for name in dict.fromkeys(names)]
        stated = {patch.base for patch in patches} - {""}
        made_for = [
            opened(f"{release.target.name}=={base}")
            for release in releases
            for base in sorted(stated)
            if release.target and is_version(base.removeprefix("v"))
        ]
        if clone:
            made_for += [of_commit(clone, commit) for base in sorted(stated) if (commit := clone.commit(base))]
        made = plan(stack, patches, releases, made_for)
        targets = {release.target.name: release.target for release in releases if release.target}
        if bisect and not targets:
            raise UsageError("--bisect needs the releases of a target", help="name one: TARGET==VERSION")
        found = list[Goes]()
        for target in targets.values() if bisect else ():
            known = {version: f"{target.name}=={version}" for version in versions(target, clone)}
            found += [goes(patch, target, known, opened) for patch in patches]
        return replace(made, goes=tuple(found))


# --- text ---


def as_text(made: Plan) -> RenderableType:
    """Return a table of patches and releases, and below it what a reader must know of each that does not just apply."""
    common, heads = short_names(made.releases)
    columns = [Column("patch", overflow="fold", max_width=_LABEL), *map(folded, heads)]
    rows: list[list[RenderableType]] = [
        [patch.label, *(_cell(made.step(patch, release)) for release in made.releases)] for patch in made.patches
    ]
    parts: list[RenderableType] = [Text(printable(f"{made.stack} on {common}" if common else made.stack), "bold")]
    parts.append(table(columns, rows))
    for patch in made.patches:
        parts += [Text(), Hanging(f"{printable(patch.label)}  ", patch.title or patch.name, "bold")]
        for head, release in zip(heads, made.releases, strict=True):
            parts += _details(made.step(patch, release), head)
    parts += [Text()] * bool(made.goes)
    parts += [Hanging("", sentence(found)) for found in made.goes]
    return Group(*parts)


def short_names(releases: Sequence[str]) -> tuple[str, list[str]]:
    """Return the target that all releases are of, and the versions; no target and the names, if there are several."""
    targets = {name.partition("==")[0] if "==" in name else "" for name in releases}
    if len(targets) == 1 and (target := targets.pop()):
        return target, [name.partition("==")[2] for name in releases]
    return "", list(releases)


def _cell(step: Step) -> Text:
    return Text(printable(brief(step)), STYLES[step.outcome])


def brief(step: Step) -> str:
    """Return the outcome in a few words: ``in since 0.6.10``."""
    if step.outcome is Outcome.IN:
        return f"in since {step.since}" if step.since else "in"
    if step.outcome is Outcome.NEEDS:
        return f"needs {_short(step.needs)}"
    if step.outcome is Outcome.CONFLICTS:
        return f"conflicts: {counted(len(step.places), 'place')}"
    if step.outcome is Outcome.PARTLY:
        return f"partly in: {counted(len([place for place in step.places if place.is_in]), 'hunk')}"
    if step.outcome is Outcome.MERGES:
        return "merges" + (f", on {_short(step.needs)}" if step.needs else "")
    return step.outcome.value + (f", on {_short(step.needs)}" if step.needs and step.outcome.is_settled else "")


def _short(needs: Sequence[str]) -> str:
    """Return labels of patches, or the number of commits."""
    return shortened(needs) if not any(" " in need for need in needs) else counted(len(needs), "commit")


def _details(step: Step, release: str) -> Iterator[RenderableType]:
    """Yield the evidence and the places of a step, if there is something to know."""
    said, places = lines(step), conflicts(step)
    if not said and not places:
        return
    yield Text.assemble(f"  {printable(release)}: ", (step.outcome.value, STYLES[step.outcome]))
    yield from (Hanging("    ", line) for line in said)
    for place in places[:_SHOWN]:
        yield Hanging("    ", place_line(place))
        yield from (Hanging("      release: ", row) for row in _rows(place.release))
        yield from (Hanging("      patch:   ", row) for row in _rows(place.patch))
        yield from (Hanging("      written by ", commit) for commit in place.commits[:_SHOWN])
    if (more := len(places) - _SHOWN) > 0:
        yield Hanging("    ", f"and {counted(more, 'place')} more, which --json has")


def _rows(lines_of_place: str) -> list[str]:
    rows = [row for row in lines_of_place.splitlines() if row.strip()]
    return [row.strip() for row in rows[:2]] + ["…"] * (len(rows) > 2)


def lines(step: Step) -> list[str]:
    """Return what is said of a step in sentences: its evidence, the hunks that are in, what it builds on."""
    said = [step.evidence] if step.evidence else []
    held = [place for place in step.places if place.is_in]
    files = {place.file: [p.hunk for p in held if p.file == place.file] for place in held}
    said += [f"in already: {hunks(numbers)} of {file}" for file, numbers in list(files.items())[:_SHOWN]]
    said += [f"and hunks of {counted(len(files) - _SHOWN, 'more file')}"] * (len(files) > _SHOWN)
    if step.needs and not step.outcome.is_settled:
        said += [f"builds on {need}" for need in step.needs[:_SHOWN]]
        said += [f"and on {counted(len(step.needs) - _SHOWN, 'more commit')}"] * (len(step.needs) > _SHOWN)
    if step.left_out:
        said.append(f"left out (not built, and does not fit): {shortened(step.left_out)}")
    return said


def hunks(numbers: Sequence[int]) -> str:
    """Return ``hunks 1, 2 and 4``; ``all`` for a file without hunks."""
    if not any(numbers):
        return "all"
    return f"hunk {numbers[0]}" if len(numbers) == 1 else f"hunks {shortened(map(str, numbers))}"


def conflicts(step: Step) -> list[Place]:
    """Return the places of a step that are not in the release already."""
    return [place for place in step.places if not place.is_in]


def place_line(place: Place) -> str:
    """Return ``csrc/a.cu:120, hunk 2: its lines are not there``."""
    where = f"{place.file}:{place.line}" if place.line else place.file
    return f"{where}{f', hunk {place.hunk}' if place.hunk else ''}: {place.reason}"


def sentence(found: Goes) -> str:
    """Return from which release on a patch can go."""
    if not found.since:
        return (
            f"{found.patch}: not in {found.target} {found.newest} yet" if found.newest else f"{found.patch}: no release"
        )
    before = f"; {found.before} has it not" if found.before else ", the oldest release that is known"
    return f"{found.patch}: can go from {found.target} {found.since} on{before}"


# --- Markdown ---


def in_markdown(made: Plan) -> str:
    """Return the table and the details as Markdown, the same bytes for the same result."""
    common, heads = short_names(made.releases)
    rows = [["patch", *heads], ["---"] * (1 + len(heads))]
    for patch in made.patches:
        title = _escaped(patch.title or patch.name)
        title = f"[{title}]({patch.link})" if patch.link else title
        rows.append([title, *(_escaped(brief(made.step(patch, release))) for release in made.releases)])
    told = [f"# Patches of {_escaped(made.stack)}{f' on {common}' if common else ''}", ""]
    told += [f"| {' | '.join(row)} |" for row in rows]
    for patch in made.patches:
        for head, release in zip(heads, made.releases, strict=True):
            step = made.step(patch, release)
            points = [*lines(step), *map(place_line, conflicts(step))]
            if points:
                told += ["", f"**{_escaped(patch.label)}** on {_escaped(head)}: {step.outcome.value}", ""]
                told += [f"- {_escaped(point)}" for point in points]
    told += ["", *(f"- {_escaped(sentence(found))}" for found in made.goes)] if made.goes else []
    return "\n".join(told) + "\n"


def _escaped(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(" ".join(text.split())))
