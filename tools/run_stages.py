"""Run stages of the Dockerfile on this machine, without a container engine.

For a machine with many cores that is thrown away afterwards. Run it as root, with /src, /opt/vllm and /opt/fp4patch as
the stages before leave them. The commands, variables and files are those of the Dockerfile.

    python tools/run_stages.py dockerfiles/Dockerfile kernels wheel --arg TORCH_CUDA_ARCH_LIST=12.1a
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import string
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

_WORDS = ("FROM", "ARG", "ENV", "COPY", "RUN")


class Instruction(NamedTuple):
    """One instruction of a Dockerfile."""

    word: str
    arguments: str
    """Arguments of the instruction, with continued lines joined."""
    text: str
    """The here-document that follows, or an empty string."""


def stages(dockerfile: str) -> dict[str, list[Instruction]]:
    """Return the instructions of each stage by the stage's name."""
    found: dict[str, list[Instruction]] = {}
    stage: list[Instruction] = []
    lines = iter(dockerfile.splitlines(keepends=True))
    for line in lines:
        word, _, arguments = line.partition(" ")
        if word not in _WORDS:
            continue
        while arguments.endswith("\\\n"):
            arguments = arguments[:-2] + next(lines).lstrip()
        text = "".join(iter(lambda: next(lines), "EOF\n")) if "<<'EOF'" in arguments else ""
        if word == "FROM":
            stage = found[arguments.split()[-1]] = []
        stage.append(Instruction(word, arguments.strip(), text))
    return found


def run(known: dict[str, list[Instruction]], name: str, given: dict[str, str], environ: dict[str, str]) -> int:
    """Execute a stage's instructions in order; return the status of the first command that fails, else 0."""
    for word, arguments, text in known[name]:
        if word == "FROM":
            _inherit(known, arguments.split()[0], given, environ)
        elif word in ("ARG", "ENV"):
            _set(word, arguments, given, environ)
        elif word == "COPY" and text:
            _write(Path(arguments.split()[-1]), text)
        elif word == "RUN":
            for source, directory in re.findall(
                r"--mount=type=(?:bind|cache)(?:,from=([\w-]+))?\S*,target=(/[^\s,]+)", arguments
            ):
                Path(directory).mkdir(parents=True, exist_ok=True)
                for copied in known.get(source, ()):
                    if copied.word == "COPY" and copied.text:
                        _write(Path(directory, copied.arguments.split()[-1].lstrip("/")), copied.text)
            if status := subprocess.run(["/bin/bash", "-c", text], env=environ, check=False).returncode:
                return status
    return 0


def _inherit(known: dict[str, list[Instruction]], base: str, given: dict[str, str], environ: dict[str, str]) -> None:
    """Set the variables and the build arguments of the stages below, as BuildKit does."""
    for word, arguments, _ in known.get(base, ()):
        if word == "FROM":
            _inherit(known, arguments.split()[0], given, environ)
        elif word in ("ARG", "ENV"):
            _set(word, arguments, given, environ)


def _set(word: str, arguments: str, given: dict[str, str], environ: dict[str, str]) -> None:
    if word == "ENV":
        for pair in shlex.split(arguments):
            name, _, value = pair.partition("=")
            environ[name] = string.Template(value).safe_substitute(environ)
        return
    name, _, default = arguments.partition("=")
    if value := given.get(name, default):
        environ[name] = value


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def main() -> int:
    """Run the named stages and print the wall time of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("stage", nargs="+")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="a build argument")
    options = parser.parse_args()
    known = stages(options.dockerfile.read_text(encoding="utf-8"))
    given = dict(text.split("=", 1) for text in options.arg)
    for name in options.stage:
        start = time.monotonic()
        status = run(known, name, given, dict(os.environ))
        sys.stderr.write(f"stage {name}: {time.monotonic() - start:.0f} s, status {status}\n")
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
