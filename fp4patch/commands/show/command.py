"""Options of ``list`` and ``show``."""

import json
from dataclasses import asdict

import click

from fp4patch.commands.common import emit, json_option, show
from fp4patch.core.errors import ManifestError


@click.command("list")
@click.argument("what", type=click.Choice(["variants", "patches", "targets"]), required=False)
@click.option("--matrix", is_flag=True, help="With patches: print the recorded result on each upstream release.")
@json_option("fp4patch.commands.show.result:Lists", "fp4patch.commands.show.result:Matrix")
def list_(what: str | None, matrix: bool, as_json: bool) -> None:
    """List variants, patches and targets."""
    from fp4patch.catalog.manifest import load
    from fp4patch.commands.show import result
    from fp4patch.commands.show import text as report

    catalog = load()
    if matrix:
        if what != "patches":
            raise click.UsageError("--matrix goes with `list patches`")
        try:
            recorded = json.loads((catalog.root / report.MATRIX).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ManifestError(f"{report.MATRIX}: {error}", help="`python -m tools.watch` writes it") from error
        if as_json:
            from pydantic import TypeAdapter

            emit(TypeAdapter(result.Matrix).validate_python(recorded))
        else:
            show(report.matrix_table(recorded))
        return
    found = result.lists(catalog, what)
    emit(found) if as_json else show(report.list_table(found))


@click.command("show")
@click.argument("name")
@json_option("fp4patch.commands.show.result:Shown")
def show_name(name: str, as_json: bool) -> None:
    """Describe one variant, patch or target.

    The output has the reason for it, a link, and the releases and files that it applies to.
    """
    from fp4patch.catalog.manifest import load
    from fp4patch.commands.show import text as report
    from fp4patch.commands.show.result import named

    found = named(load(), name)
    emit(found) if as_json else show(report.show_text(asdict(found)))
