"""``fp4patch list``: all variants, patches and targets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import click
from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch.catalog.manifest import Catalog, load
from fp4patch.commands.options import json_option
from fp4patch.console import Hanging, emit, show
from fp4patch.core.document import Document, Report


@dataclass(frozen=True)
class VariantRow(Document):
    """A variant."""

    name: str
    title: str
    arch: tuple[str, ...]
    """Architectures that it is verified for: ``sm_121a``."""
    patches: tuple[str, ...]
    """Ids of its patches in the order in which they are applied: ``cutlass/e2m1-guard``."""


@dataclass(frozen=True)
class PatchRow(Document):
    """A patch."""

    name: str
    title: str
    version: str
    target: str
    applies: str
    """Upstream releases that it was tried on, a version specifier (PEP 440)."""


@dataclass(frozen=True)
class TargetRow(Document):
    """A target."""

    name: str
    title: str
    versions: tuple[str, ...]
    """Releases with a pinned archive."""
    git: str
    """Upstream repository."""


@dataclass(frozen=True)
class Lists(Report):
    """Variants, patches and targets; empty if only another list was requested."""

    variants: tuple[VariantRow, ...] = ()
    patches: tuple[PatchRow, ...] = ()
    targets: tuple[TargetRow, ...] = ()


@click.command("list", epilog="Example: fp4patch list variants")
@click.argument("what", type=click.Choice(["variants", "patches", "targets"]), required=False)
@json_option("fp4patch.commands.list:Lists")
def list_(what: str | None, as_json: bool) -> None:
    """List variants, patches and targets."""
    listed = lists(load(), what)
    emit(listed) if as_json else show(text(listed))


def lists(catalog: Catalog, what: str | None = None) -> Lists:
    """Return the lists; only one of the three if ``what`` names it."""
    rows = Lists(
        tuple(VariantRow(v.name, v.title, tuple(v.arch), v.patch_ids) for v in catalog.variants.values()),
        tuple(PatchRow(p.id, p.title, p.version, p.target, p.applies) for p in catalog.patches.values()),
        tuple(
            TargetRow(t.name, t.title, tuple(archive.version for archive in t.pinned), t.git)
            for t in catalog.targets.values()
        ),
    )
    return Lists(**{what: getattr(rows, what)}) if what else rows


def text(listed: Lists) -> RenderableType:
    """Return each name with its title, and below it what it consists of or was tried on."""
    return Group(
        *_entries("variants", ((v.name, v.title, " ".join(v.patches)) for v in listed.variants)),
        *_entries("patches", ((p.name, p.title, f"tried on {p.applies}" * bool(p.applies)) for p in listed.patches)),
        *_entries("targets", ((t.name, t.title, _releases(t.versions)) for t in listed.targets)),
    )


def _entries(kind: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[RenderableType]:
    for position, (name, title, more) in enumerate(rows):
        if not position:
            yield Text(f"{kind}:", style="bold")
        yield Hanging(f"  {name}  ", title, "bold")
        yield Hanging("      ", more)


def _releases(versions: Sequence[str]) -> str:
    if not versions:
        return "fetched by git"
    named = ", ".join(versions) if len(versions) <= 8 else f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"
    return f"fetched from the package index: {named}"
