"""The file ``docker-bake.hcl``: every variant for every set of GPUs, from the same pins as ``fp4patch build``."""

import json
from collections.abc import Mapping, Sequence

from fp4patch.catalog.target import Target
from fp4patch.catalog.variant import Variant
from fp4patch.images import architectures, command, sources
from fp4patch.images.image import BuildRequest

SETS = {
    "gb10": (("12.1a",), ("linux/arm64",)),
    "rtx": (("12.0a",), ("linux/amd64",)),
    "both": (("12.0a", "12.1a"), ("linux/amd64", "linux/arm64")),
}
"""Sets of GPUs that images are built for: their architectures, and the platforms of machines with such GPUs."""

HEAD = """\
# Made by `fp4patch build --print-bake`; a test makes it again and compares.
#
# A build context each, then all of them, or a group (a variant's name), or one:
#
#     fp4patch build --variant next3 --arch 12.1a --dry-run --context contexts/next3-gb10
#     docker buildx bake next3-gb10
#
# `fp4patch build` does more: it looks at the engine first, and labels the image with the digest of its receipts.
"""


OF_GPUS = ("FP4_ARCH", "FP4_FOR", "TORCH_CUDA_ARCH_LIST")
"""The build arguments that the set of GPUs decides; the variant decides the others."""


def text(variants: Sequence[Variant], targets: Mapping[str, Target]) -> str:
    """Return the text of the file, for variants that pin an image and have rules for both GPUs."""
    requests = {(v.name, gpus): _arguments(v, archs, targets) for v in variants for gpus, (archs, _) in SETS.items()}
    names = [v.name for v in variants]
    of_variant = [key for key in dict.fromkeys(key for row in requests.values() for key in row) if key not in OF_GPUS]
    pins = {name: {key: requests[name, "both"].get(key) for key in of_variant} for name in names}  # null: not set
    gpus = {
        name: {key: requests[names[0], name][key] for key in OF_GPUS} | {"platforms": list(platforms)}
        for name, (_, platforms) in SETS.items()
    }
    arguments = [f"    {key} = PINS[variant].{key}" for key in of_variant]
    arguments += [f"    {key} = GPUS[gpus].{key}" for key in OF_GPUS]
    return "\n".join(
        [
            HEAD,
            _variable("CONTEXTS", json.dumps("contexts")),
            _variable("REPOSITORY", json.dumps("vllm-nvfp4")),
            _variable("PINS", _table(pins)),
            _variable("GPUS", _table(gpus)),
            _group("default", [f"{name}-{gpus}" for name in names for gpus in SETS]),
            *(_group(name, [f"{name}-{gpus}" for gpus in SETS]) for name in names),
            'target "image" {',
            f"  matrix = {{ variant = {json.dumps(names)}, gpus = {json.dumps(list(SETS))} }}",
            '  name = "${variant}-${gpus}"',
            '  context = "${CONTEXTS}/${variant}-${gpus}"',
            '  target = "runtime"',
            "  platforms = GPUS[gpus].platforms",
            '  tags = ["${REPOSITORY}:${variant}-${gpus}"]',
            "  args = {",
            *arguments,
            "  }",
            "}\n",
        ]
    )


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


def _variable(name: str, default: str) -> str:
    return f'variable "{name}" {{\n  default = {default}\n}}\n'


def _group(name: str, targets: Sequence[str]) -> str:
    return f'group "{name}" {{\n  targets = {json.dumps(targets)}\n}}\n'


def _table(rows: Mapping[str, Mapping[str, object]]) -> str:
    """Return an HCL object of objects, with a line for each value."""
    lines = ["{"]
    for name, values in rows.items():
        lines += [f"    {name} = {{", *(f"      {key} = {json.dumps(value)}" for key, value in values.items()), "    }"]
    return "\n".join([*lines, "  }"])
