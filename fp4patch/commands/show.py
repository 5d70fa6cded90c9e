"""``fp4patch show``: one variant, patch or target, or the names of all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from fp4patch import console
from fp4patch.catalog.manifest import Catalog, load
from fp4patch.catalog.patch import Patch
from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.commands.options import every_name, json_option
from fp4patch.core.document import Report
from fp4patch.core.errors import UsageError
from fp4patch.core.wording import suggested


@dataclass(frozen=True)
class Shown(Report):
    """Contents of the TOML files of variants, patches and targets: of all of them, or of the one that was named."""

    variants: tuple[Variant, ...]
    patches: tuple[Patch, ...]
    """Each names all variants that contain it, whichever of the two names the other."""
    targets: tuple[Target, ...]


@click.command(epilog="Example: fp4patch show next3")
@click.argument("name", required=False, shell_complete=every_name)
@json_option("fp4patch.commands.show:Shown")
def show(name: str | None, as_json: bool) -> None:
    """Describe one variant, patch or target, or list all.

    The output has the reason for it, a link, and the releases and files that it applies to.
    """
    shown = contents(load(), name)
    if as_json:
        console.emit(shown)
    elif name:
        things: list[Variant | Patch | Target] = [*shown.variants, *shown.patches, *shown.targets]
        for thing in things:
            console.show(Group(*_described(asdict(thing), type(thing).__name__.lower())))
    else:
        console.show(Group(*_listed(shown)))


def contents(catalog: Catalog, name: str | None) -> Shown:
    """Return every field of what has that name, or of all; a patch may be named without its target."""
    variants = tuple(variant for variant in catalog.variants.values() if name in (None, variant.name))
    targets = tuple(target for target in catalog.targets.values() if name in (None, target.name))
    patches = tuple(
        replace(patch, variants=tuple(v.name for v in catalog.variants.values() if patch.id in v.patch_ids))
        for patch in catalog.patches.values()
        if name in (None, patch.id, patch.name)
    )
    if name and not (variants or patches or targets):
        every = [*catalog.variants, *catalog.targets, *catalog.patches, *(p.name for p in catalog.patches.values())]
        advice = suggested(name, every, "`fp4patch show` lists what there is")
        raise UsageError(f"there is nothing named {name!r}", help=advice)
    return Shown(variants, patches, targets)


def _listed(shown: Shown) -> Iterator[RenderableType]:
    """Yield each name with its title."""
    for kind, titles in (
        ("variants", {variant.name: variant.title for variant in shown.variants}),
        ("patches", {patch.id: patch.title for patch in shown.patches}),
        ("targets", {target.name: target.title for target in shown.targets}),
    ):
        yield Text(f"{kind}:", style="bold")
        yield from (console.Hanging(f"  {name}  ", title, "bold") for name, title in titles.items())


def _described(shown: Mapping[str, Any], kind: str) -> Iterator[RenderableType]:
    """Yield the title, then each part that has a value under its name, one per line; a pipe gets it complete."""
    yield Text.assemble(("/".join(shown[key] for key in ("target", "name") if key in shown), "bold"), f"  {kind}")
    yield console.Hanging("", shown["title"])
    for key, value in _facts(shown):
        if value:
            yield console.Hanging(f"  {key}: ", " ".join(value.split()), "bold")


_TEXTS = ("summary", "reason", "link", "applies", "retire", "cost", "promise", "git")
_LISTS = ("arch", "variants")


def _facts(shown: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each part of a variant, patch or target, as their files name it."""
    yield from ((key, shown.get(key, "")) for key in _TEXTS)
    yield from ((key, ", ".join(shown.get(key, ()))) for key in _LISTS)
    for target, chosen in shown.get("targets", {}).items():
        yield target, ", ".join(chosen["patches"]) or "nothing to patch"
    for edit in shown.get("edits", ()):
        yield edit["op"], edit.get("file") or ", ".join(edit.get("search", ()))
    for probe in shown.get("probes", ()):
        yield "probe", f"{probe['name']}: {probe['title']}"
    yield "releases", ", ".join(archive["version"] for archive in shown.get("archives", ()))
