"""``fp4patch show``: one variant, patch or target."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

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


@dataclass(frozen=True, kw_only=True)
class ShownVariant(Variant, Report):
    """Contents of a variant's TOML file."""

    kind: Literal["variant"] = "variant"


@dataclass(frozen=True, kw_only=True)
class ShownTarget(Target, Report):
    """Contents of a target's TOML file."""

    kind: Literal["target"] = "target"


@dataclass(frozen=True, kw_only=True)
class ShownPatch(Patch, Report):
    """Contents of a patch's TOML file."""

    kind: Literal["patch"] = "patch"
    variants: tuple[str, ...] = ()
    """All variants that contain the patch, whichever of the two names the other."""


Shown = ShownVariant | ShownTarget | ShownPatch


@click.command(epilog="Example: fp4patch show next3")
@click.argument("name", shell_complete=every_name)
@json_option("fp4patch.commands.show:Shown")
def show(name: str, as_json: bool) -> None:
    """Describe one variant, patch or target.

    The output has the reason for it, a link, and the releases and files that it applies to.
    """
    shown = named(load(), name)
    console.emit(shown) if as_json else console.show(text(asdict(shown)))


def named(catalog: Catalog, name: str) -> Shown:
    """Return every field of the variant, patch or target of that name. UsageError: see ``Catalog.named``."""
    thing = catalog.named(name)
    values = {key.name: getattr(thing, key.name) for key in fields(thing)}
    if isinstance(thing, Patch):
        values["variants"] = tuple(v.name for v in catalog.variants.values() if thing.id in v.patch_ids)
        return ShownPatch(**values)
    return ShownVariant(**values) if isinstance(thing, Variant) else ShownTarget(**values)


def text(shown: Mapping[str, Any]) -> RenderableType:
    """Return the title, then each part that has a value under its name, one per line; a pipe gets it complete."""
    lines: list[RenderableType] = [Text.assemble((shown["name"], "bold"), f"  {shown['kind']}")]
    lines.append(console.Hanging("", shown["title"]))
    lines += [console.label(label, " ".join(value.split()), "bold", "  ") for label, value in _facts(shown) if value]
    return Group(*lines)


_TEXTS = {
    "summary": "summary",
    "reason": "reason",
    "link": "link",
    "applies": "tried on",
    "retire": "can be deleted",
    "cost": "cost",
    "promise": "promise",
    "git": "upstream",
}
_LISTS = {"arch": "targets", "variants": "variants"}


def _facts(shown: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each part of a variant, patch or target."""
    yield from ((label, shown.get(key, "")) for key, label in _TEXTS.items())
    yield from ((label, ", ".join(shown.get(key, ()))) for key, label in _LISTS.items())
    for target, chosen in shown.get("targets", {}).items():
        yield target, ", ".join(chosen["patches"]) or "nothing to patch"
    for edit in shown.get("edits", ()):
        yield edit["op"], edit.get("file") or ", ".join(edit.get("search", ()))
    for probe in shown.get("probes", ()):
        yield "probe", f"{probe['name']}: {probe['title']}"
    versions = [archive["version"] for archive in shown.get("archives", ())]
    yield "releases", ", ".join([*versions, *(version for row in shown.get("series", ()) for version in row["sha256"])])
