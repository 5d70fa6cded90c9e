"""Arguments and options that several commands share."""

from __future__ import annotations

import json
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fp4patch.catalog.manifest import Catalog

Command = TypeVar("Command", bound="Callable[..., object]")


class Place(click.Path):
    """A path that is not empty: Python takes an empty one for the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty path, and convert any other as click does."""
        if value == "":
            self.fail("it is empty; if a command in $(…) was to print it, see that command's error", param, ctx)
        return super().convert(value, param, ctx)


PLACE, NAME = Place(path_type=Path), Place(path_type=str)
FILE, FOLDER = Place(path_type=Path, dir_okay=False), Place(path_type=Path, file_okay=False)
TREES = click.argument("trees", metavar="TREE...", nargs=-1, required=True, type=PLACE)
WITH = click.option(
    "--with",
    "outside",
    metavar="DIR",
    multiple=True,
    type=FOLDER,
    help="Apply the patches in this directory first: a stack, or one of `fp4patch new-patch`. Repeatable.",
)
JOBS = click.option(
    "--jobs", "-j", metavar="N", type=click.IntRange(1, 64), help="Compilations at a time. Default: one per core."
)


def _trust(_context: click.Context, _parameter: click.Parameter, trusted: bool) -> None:
    from fp4patch.core.process import Trust  # noqa: PLC0415 - each command loads what it uses

    Trust.trees = trusted


TRUST_TREE = click.option(
    "--trust-tree",
    is_flag=True,
    expose_value=False,
    callback=_trust,
    help="Run what a tree's build says with your rights, and not in a sandbox.",
)


def completed(names: Callable[[], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the completion of a name, or of the last one in a list; they are read when a shell asks."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return [before + name for name in names() if name.startswith(incomplete[len(before) :])]

    return complete


def _catalog() -> Catalog:
    from fp4patch.catalog.manifest import load  # noqa: PLC0415 - only where a shell completes

    return load()


def _gpus() -> list[str]:
    from fp4patch.binaries.known_programs import known  # noqa: PLC0415 - the same

    return [*known().gpu, *sorted({*known().gpu.values()})]


def _archs() -> list[str]:
    return sorted({arch for variant in _catalog().variants.values() for arch in variant.arch})


variant_names = completed(lambda: _catalog().variants)
target_names = completed(lambda: _catalog().targets)
patch_names = completed(lambda: [patch.name for patch in _catalog().patches.values()])
every_name = completed(lambda: [*_catalog().variants, *_catalog().targets, *_catalog().patches])
releases = completed(lambda: [f"{t.name}=={a.version}" for t in _catalog().targets.values() for a in t.archives])
gpu_names, arch_names = completed(_gpus), completed(_archs)
torch_archs = completed(lambda: [f"{arch[3:-2]}.{arch[-2:]}" for arch in _archs() if arch[-1] in "af"])
cuda_releases = completed(
    lambda: sorted({cuda for t in _catalog().targets.values() if t.build for cuda in t.build.cuda})
)


def variant_option(*, required: bool) -> Callable[[Command], Command]:
    """Return ``--variant NAME``."""
    return click.option(
        "--variant",
        metavar="NAME",
        required=required,
        shell_complete=variant_names,
        help="Name of the variant; see `fp4patch show`.",
    )


def json_option(*results: str) -> Callable[[Command], Command]:
    """Return ``--json`` and ``--json-schema`` of a command whose results are of these classes, ``module:Class``."""

    def options(command: Command) -> Command:
        json_ = click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON document on stdout instead of text."
        )
        return json_(schema_option(*results, "fp4patch.console:Failure")(command))

    return options


def schema_option(*results: str) -> Callable[[Command], Command]:
    """Return ``--json-schema`` of a command whose results are of these classes, which are imported when it is used."""

    def show_schema(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
        if wanted:
            named = [name.split(":") for name in results]
            kinds = [getattr(import_module(module), kind) for module, kind in named]
            schema = json_schema(reduce(or_, kinds)) | {"title": f"fp4patch {context.command.name}"}
            click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
            context.exit()

    return click.option(
        "--json-schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_schema,
        help="Print the JSON schema of that document, and do nothing else.",
    )


def json_schema(result: Any) -> dict[str, Any]:
    """Return the schema of the document of a result's class, or of a union; the meanings are the docstrings."""
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415 - it takes a while to load

    # Of the adapter and not of the classes, which inherit it here: to read docstrings takes long.
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)
    made = TypeAdapter[Any](result, config=config).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made
