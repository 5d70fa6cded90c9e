"""The command line: find the command, call it, choose the exit status; every error becomes one message here.

The module of a command is imported when the command is called, so that ``fp4patch -h`` is quick.
"""

import gc
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import NoReturn

import click

from fp4patch import __version__
from fp4patch.core.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_REFUSED, Fp4PatchError, UsageError

GROUPS = {
    "Start here": {
        "doctor": ("doctor:doctor", "Tell whether FP4 works on a GPU: on this machine, or with each PATH."),
        "explore": ("explore_page:explore", "Open a page with the answers of doctor for every release."),
        "show": ("show:show", "Describe one variant, patch or target, or list all."),
    },
    "Patch": {
        "fetch": ("fetch:fetch", "Fetch the pristine tree of a release into DIRECTORY."),
        "apply": ("apply:apply", "Apply a variant's patches to all TREEs, or to none."),
        "new-patch": ("new_patch:new_patch", "Make a patch of a diff, mail or commit: a pull request of TARGET."),
        "plan": ("plan:plan_command", "Tell what becomes of a STACK of patches on releases."),
        "status": ("status:status", "Report the state of each file and patch of a TREE."),
        "revert": ("apply:revert", "Restore the pristine bytes of all TREEs, or of none."),
        "export": ("export:export", "Export the patches of a variant as changes for upstream."),
    },
    "Prove": {
        "verify": ("verify:verify", "Compile the probes of a patched TREE and check the code."),
        "evidence": ("evidence.command:evidence", "Write a variant's proofs, with a program for a GPU."),
    },
    "Build": {
        "build": ("build:build", "Build a patched vLLM as an image that carries its proof."),
    },
}
"""Each command with the place of its function below ``fp4patch.commands`` and its summary, by what it is for."""
COMMANDS = {name: place for commands in GROUPS.values() for name, (place, _) in commands.items()}


class Commands(click.Group):
    """The commands, by what they are for; each is imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's parameters
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """Import a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"fp4patch.commands.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line; NoSuchCommand suggests the names that are near."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        """Write each group with the summaries of its commands; none is imported."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="fp4patch")
def fp4patch() -> None:
    """Patch CUTLASS, vLLM, FlashInfer and more for NVFP4 on SM120 and SM121, and verify the result."""


def main() -> NoReturn:
    """Run the command line and exit with its status; see :mod:`fp4patch.core.errors` for the meaning of each.

    A kill and a hang-up act like Ctrl-C: they end compilers and remove temporary directories.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup, a hang-up is ignored
            signal.signal(number, signal.default_int_handler)
    # Few tokens are in cycles; the search for cycles among them would make an apply to vLLM a seventh slower.
    gc.set_threshold(200_000)
    # NumPy's threads for algebra, one for each core, would wait actively for work that never comes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _make_streams_safe()
    status = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # reported already; the exit would fail on the buffered rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
        return int(fp4patch.main(arguments, prog_name="fp4patch", standalone_mode=False) or 0)
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
        from fp4patch import console

        _emit_error(error, arguments)
        console.show(console.error(error), err=True)
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            raise
        from fp4patch.console import LINES, printable

        click.echo(printable(traceback.format_exc(), kept=LINES), err=True)
        click.echo("this is a bug of ours: please report it with these lines", err=True)
        return EXIT_BUG


def _emit_error(error: Fp4PatchError, arguments: list[str]) -> None:
    """Print the error as a JSON document on stdout, if the command line requests JSON."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    if "--json" in arguments and command != "verify":  # the --json of verify names a file
        from fp4patch import console

        console.emit(console.Failure(error.message, error.help, error.problems))
