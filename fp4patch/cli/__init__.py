"""The command line: parse, call a verb, print what it returned, choose the exit status; nothing else.

Verbs and their libraries are imported when they are called, so that ``fp4patch -h`` is quick.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

import click

from fp4patch import __version__
from fp4patch.cli import doctor, image, objects, probe, proof, trees
from fp4patch.cli.common import emit, show
from fp4patch.errors import Fp4PatchError

EXIT_BUG, EXIT_INTERRUPTED = 3, 130

COMMANDS = (
    *(trees.list_, trees.show_name, trees.fetch, trees.apply, trees.status, trees.revert),
    *(proof.verify, proof.bench, objects.objects),
    *(doctor.doctor, probe.probe),
    *(image.build, image.inspect),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="fp4patch")
@click.option("--debug", is_flag=True, help="Show a traceback where fp4patch itself fails.")
def cli(debug: bool) -> None:
    """Patch CUTLASS, vLLM and FlashInfer sources for NVFP4 on SM120 and SM121, and prove it in the machine code."""


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line and exit with its status; see :mod:`fp4patch.errors` for what each means."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit status for these arguments; every error becomes one message here."""
    try:
        return int(cli.main(arguments, prog_name="fp4patch", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Fp4PatchError as error:
        from fp4patch.report import terminal

        command = next((word for word in arguments if not word.startswith("-")), "")
        if "--json" in arguments and command != "verify":  # whose --json names a file
            from fp4patch.report import document

            emit(document.error_document(error))
        show(terminal.error(error), err=True)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has left; nothing is wrong
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - closed by the exit, which would else fail on flush
        return 0
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        else:
            click.echo(f"fp4patch failed: {type(error).__name__}: {error}", err=True)
            click.echo(
                "this is a bug of ours: please report it with the output of the same command after `fp4patch --debug`",
                err=True,
            )
        return EXIT_BUG
