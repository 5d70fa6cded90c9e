"""The command that inspects and changes nothing: this machine, source trees, builds, binaries, logs."""

from dataclasses import replace

import click

from fp4patch.commands.options import NAME, TRUST_TREE, cuda_releases, gpu_names, json_option, torch_archs
from fp4patch.console import emit, show
from fp4patch.core.errors import EXIT_REFUSED, UsageError


@click.command(epilog="Example: fp4patch doctor --for gb10 vllm==0.33.0")
@click.argument("paths", metavar="[PATH...]", nargs=-1, type=NAME)
@click.option(
    "--for",
    "gpus",
    metavar="GPUS",
    multiple=True,
    shell_complete=gpu_names,
    help="Answer for these GPUs only, for example gb10 or sm_120,sm_121. Repeatable.",
)
@click.option(
    "--arch-list",
    "--torch-cuda-arch-list",
    "arch_list",
    metavar="LIST",
    shell_complete=torch_archs,
    help="Architectures of the build, as in TORCH_CUDA_ARCH_LIST.",
)
@click.option(
    "--cuda",
    metavar="V",
    shell_complete=cuda_releases,
    help="CUDA release of the build, for example 13.0. Default: the installed one.",
)
@click.option(
    "--require",
    metavar="WHAT",
    multiple=True,
    help="Fail unless every compiled file has code for GPU, FP4 works as a whole (GPU:fp4), every file has FP4"
    " instructions (GPU:native), or what a variant makes (GPU:variant=NAME); then :only=PATTERN or :except=PATTERN"
    " selects files.",
)
@click.option("--details", is_flag=True, help="List every file with its code, and a tree's patches.")
@TRUST_TREE
@json_option("fp4patch.doctor.result:DoctorReport")
def doctor(
    paths: tuple[str, ...],
    gpus: tuple[str, ...],
    arch_list: str | None,
    cuda: str | None,
    require: tuple[str, ...],
    details: bool,
    as_json: bool,
) -> None:
    """Tell whether FP4 works on a GPU: on this machine, or with each PATH.

    A PATH is a source tree, any CUDA project, a configured build, a Dockerfile, a wheel, a .so, a cubin or another file
    with device code, a directory of them, an installed package, the name of an image, a release (vllm==0.33.0), a
    Python or virtual environment, a list of packages (requirements.txt, environment.yml, output of pip freeze or conda
    list), the text of nvidia-smi or collect_env, a model's directory, an archive of sources, or a log (- is standard
    input). Of an image or a directory by `fp4patch build`, the labels and the proof are checked too.

    Doctor runs the CMakeLists.txt of a vLLM tree, and functions of FlashInfer's own Python, as a build would, in a
    sandbox of the kernel.

    Exit status: 0 if no answer is no, 1 if one is or if nothing was judged, 2 if a PATH or a GPU does not exist. With
    --require: 0 if all requirements are met and everything was read, else 1.
    """
    from fp4patch.binaries.findings import Level
    from fp4patch.commands.doctor_text import report_text
    from fp4patch.console import progress_bar
    from fp4patch.doctor import run as verb
    from fp4patch.doctor.result import DoctorReport

    question = replace(verb.question(gpus, arch_list, cuda, require), patches=details or as_json)
    if not paths and (question.required or question.asked):
        raise UsageError("--require and --arch-list have no effect on this machine", help="name a tree or a file")
    whole = DoctorReport()
    for path in paths or (None,):
        with progress_bar() as tick:
            report = verb.examine(path, question, on_step=tick) if path else None
        report = report or DoctorReport(verb.examine_machine(question))
        if not as_json:
            show(report_text(report, details=details))
        whole += report
    if as_json:
        emit(whole)
    if whole.verdict in (Level.RED, Level.NONE):
        raise click.exceptions.Exit(EXIT_REFUSED)
