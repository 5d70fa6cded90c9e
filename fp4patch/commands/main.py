"""The command line: parse, call a verb, print what it returned, choose the exit status; nothing else.

Verbs and their libraries are imported when they are called, so that ``fp4patch -h`` is quick.
"""

import gc
import os
import signal
import sys
import traceback
from typing import NoReturn

import click

from fp4patch import __version__
from fp4patch.commands import apply, doctor, status, verify
from fp4patch.commands.build import command as build
from fp4patch.commands.common import EXIT_REFUSED, emit, show, swallow
from fp4patch.commands.evidence import command as evidence
from fp4patch.commands.explore import command as explore
from fp4patch.commands.export import command as export
from fp4patch.commands.fetch import command as fetch
from fp4patch.commands.inspect import command as inspect
from fp4patch.commands.show import command as show_
from fp4patch.core.errors import Fp4PatchError, UsageError

EXIT_BUG, EXIT_INTERRUPTED = 3, 130

COMMANDS = (
    *(show_.list_, show_.show_name, fetch.fetch, apply.apply, status.status, apply.revert, export.export),
    *(verify.verify, evidence.evidence),
    *(doctor.doctor, explore.explore),
    *(build.build, inspect.inspect),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="fp4patch")
@click.option("--debug", is_flag=True, help="Print a traceback if fp4patch itself fails.")
def cli(debug: bool) -> None:
    """Patch CUTLASS, vLLM, FlashInfer and more for NVFP4 on SM120 and SM121, and verify the result."""


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line and exit with its status; see :mod:`fp4patch.core.errors` for the meaning of each.

    A kill and a hang-up act like Ctrl-C: they end compilers and remove temporary directories.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup, a hang-up is ignored
            signal.signal(number, signal.default_int_handler)
    gc.set_threshold(
        200_000
    )  # tokens form no cycles, and the search for cycles among them would take a third of an apply
    _make_streams_safe()
    status = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # reported already; the exit would fail on the buffered rest
        swallow(sys.stdout)
    if status == EXIT_INTERRUPTED:
        # Python stores a Ctrl-C that arrives in code compiled from a string (for example a dataclass's), even after it
        # was handled, and ends itself by the signal: https://github.com/python/cpython/blob/v3.11.7/Python/pythonrun.c
        os._exit(status)
    sys.exit(status)


def _make_streams_safe() -> None:
    """Make output safe for any start environment: a closed stream discards it, a narrow encoding escapes it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - for as long as we run
        elif stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def run(arguments: list[str]) -> int:
    """Return the exit status for these arguments; every error becomes one message here."""
    try:
        return _run(arguments)
    except FileNotFoundError:  # raised by getcwd
        click.echo("error: the current directory does not exist any more: change to another", err=True)
    except OSError as error:
        click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
    return EXIT_REFUSED


def _run(arguments: list[str]) -> int:
    """Run the command line; leave only an OSError without a file name, about an output or the working directory."""
    try:
        return int(cli.main(arguments, prog_name="fp4patch", standalone_mode=False) or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        advice = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx else ""
        _emit_error(UsageError(error.format_message(), help=" ".join(advice.split())), arguments)
        error.show()
        return error.exit_code
    except Fp4PatchError as error:
        from fp4patch.commands import terminal

        _emit_error(error, arguments)
        show(terminal.error(error), err=True)
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            raise
        if _was_interrupted(error):
            click.echo("interrupted", err=True)
            return EXIT_INTERRUPTED
        if "--debug" in arguments:
            traceback.print_exc()
        else:
            from fp4patch.commands.words import printable

            click.echo(printable(f"fp4patch failed: {type(error).__name__}: {error}"), err=True)
            click.echo(
                "this is a bug of ours: please report it with the output of the same command after `fp4patch --debug`",
                err=True,
            )
        return EXIT_BUG


def _emit_error(error: Fp4PatchError, arguments: list[str]) -> None:
    """Print the error as a JSON document on stdout, if the command line requests JSON."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    if "--json" in arguments and command != "verify":  # the --json of verify names a file
        from fp4patch.commands import document

        emit(document.failure(error))


def _was_interrupted(error: BaseException) -> bool:
    """Return whether a Ctrl-C is behind an error: while a class is made, Python turns it into one of another kind."""
    behind = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (behind is not None and _was_interrupted(behind))
