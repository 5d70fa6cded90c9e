"""The file docker-bake.hcl matches the pins, and buildx reads it as the command line that we would run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import fp4patch
from fp4patch.commands.build.bake import SETS
from fp4patch.commands.build.run import Options, plan, print_bake
from fp4patch.images import command
from variants import VARIANTS

ROOT = Path(fp4patch.__file__).parents[1]


def test_the_committed_file_is_the_one_that_the_pins_make() -> None:
    again = "run `fp4patch build --print-bake >docker-bake.hcl`"
    assert (ROOT / "docker-bake.hcl").read_text(encoding="utf-8") == print_bake(), again


def test_buildx_reads_in_it_what_our_own_command_says(engine: dict[str, str]) -> None:
    run = subprocess.run(
        ["docker", "buildx", "bake", "--print"], cwd=ROOT, capture_output=True, text=True, check=False, env=engine
    )
    assert run.returncode == 0, run.stderr
    targets = json.loads(run.stdout)["target"]
    assert len(targets) == len(VARIANTS) * len(SETS)
    for variant in VARIANTS:
        for gpus, (archs, platforms) in SETS.items():
            target = targets[f"{variant}-{gpus}"]
            request = plan(Options(variant=variant, archs=archs)).request
            assert target["args"] == command.arguments(request)
            assert target["platforms"] == list(platforms)
            assert target["target"] == request.target
