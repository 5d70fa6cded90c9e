"""The file ``docker-bake.hcl``: every variant for every set of GPUs, from the same pins as ``fp4patch build``."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.commands.templates import render
from fp4patch.images import architectures, command, sources
from fp4patch.images.image import BuildRequest

SETS = {
    "gb10": (("12.1a",), ("linux/arm64",)),
    "rtx": (("12.0a",), ("linux/amd64",)),
    "both": (("12.0a", "12.1a"), ("linux/amd64", "linux/arm64")),
}
"""Sets of GPUs that images are built for: their architectures, and the platforms of machines with such GPUs."""

OF_GPUS = ("FP4_ARCH", "FP4_FOR", "TORCH_CUDA_ARCH_LIST")
"""The build arguments that the set of GPUs decides; the variant decides the others."""


def text(variants: Sequence[Variant], targets: Mapping[str, Target]) -> str:
    """Return the text of the file, for variants that pin an image and have rules for both GPUs."""
    requests = {(v.name, gpus): _arguments(v, archs, targets) for v in variants for gpus, (archs, _) in SETS.items()}
    names = [v.name for v in variants]
    of_variant = [key for key in dict.fromkeys(key for row in requests.values() for key in row) if key not in OF_GPUS]
    pins = {name: {key: requests[name, "both"].get(key) for key in of_variant} for name in names}  # null: not set
    gpus_of_sets = {
        name: {key: requests[names[0], name][key] for key in OF_GPUS} | {"platforms": list(platforms)}
        for name, (_, platforms) in SETS.items()
    }
    groups = {"default": [f"{name}-{gpus}" for name in names for gpus in SETS]}
    groups |= {name: [f"{name}-{gpus}" for gpus in SETS] for name in names}
    values = {"names": names, "sets": list(SETS), "groups": groups, "pins": pins, "gpus": gpus_of_sets}
    keys = {"of_variant": of_variant, "of_gpus": OF_GPUS}
    return render("docker-bake.hcl.j2", Path(__file__).parent, json=json.dumps, **values, **keys) + "\n"


def _arguments(variant: Variant, asked: Sequence[str], targets: Mapping[str, Target]) -> dict[str, str]:
    pins = variant.image
    assert pins is not None
    archs = architectures.check(asked, variant, (), allow_bare=False)
    assert archs.judged == archs.asked, f"{variant.name} has no rules for some of {asked}"
    request = BuildRequest(
        variant=variant.name,
        archs=archs,
        trees={name: sources.release(targets[name], version, whole=True) for name, version in pins.trees.items()},
        torch=pins.torch.version,
        base_image=pins.base,
        runtime_image=pins.runtime,
    )
    return command.arguments(request)
