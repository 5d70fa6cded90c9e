"""The build context: the Dockerfile, the running fp4patch as a wheel, and the pins that the stages read.

Equal inputs give equal bytes, so that the builder's cache matches.
"""

import base64
import hashlib
import importlib.metadata
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fp4patch
from fp4patch.catalog.manifest import DATA, data_root
from fp4patch.catalog.outside import OutsidePatch
from fp4patch.catalog.variant import TorchPin
from fp4patch.core.document import SCHEMA
from fp4patch.images.image import BuildRequest

WITH = "with"
"""Directory of the context that holds the patches outside of the catalog."""


def files(request: BuildRequest, machines: Sequence[str]) -> dict[str, bytes]:
    """Return the context's files by name. ``machines`` are ``x86_64``, ``aarch64``."""
    root = data_root()
    dockerfile = root / "dockerfiles" / "Dockerfile"
    name, content = wheel(root)
    return {
        "Dockerfile": dockerfile.read_bytes(),
        "fp4_objects.py": dockerfile.with_name("fp4_objects.py").read_bytes(),
        name: content,
        "constraints.txt": f"torch=={request.torch.version}\n".encode(),
        "torch.txt": torch_requirement(request.torch, machines).encode(),
        "pins.json": (json.dumps(pins(request), indent=2) + "\n").encode(),
        f"{WITH}/README": b"Patches that are applied ahead of the variant's own, each a directory or in a stack.\n",
        **{f"{WITH}/{name}": data for name, data in request.with_files.items()},
    }


def pins(request: BuildRequest) -> dict[str, Any]:
    """Return ``pins.json``: the inputs of the image, by version and hash."""
    return {
        "schema": SCHEMA,
        "fp4patch": fp4patch.__version__,
        "variant": request.variant,
        "arch": [str(arch) for arch in request.archs.asked],
        "judged": [str(arch) for arch in request.archs.judged],
        "gpus": [str(gpu) for gpu in request.archs.gpus],
        "trees": {name: dict(source.pin) for name, source in request.trees.items()},
        "diffs": {patch.id: _diff(patch) for patch in request.outside},
        "torch": {"version": request.torch.version, "wheels": request.torch.wheels},
        "cuda": request.cuda,
        "base": request.base_image,
        "runtime": request.runtime_image,
    }


def _diff(patch: OutsidePatch) -> dict[str, str]:
    """Return where a patch is from and its hash; of a stack's, the stack and its hash too."""
    said = {"link": patch.link, "sha256": hashlib.sha256(patch.diff).hexdigest()}
    origin = patch.origin
    stack = {"stack": origin.stack, "stack_sha256": origin.stack_sha256, "file_sha256": origin.file_sha256}
    return said | (stack if origin.stack else {})


def torch_requirement(torch: TorchPin, machines: Sequence[str]) -> str:
    """Return a pip requirements file for PyTorch alone, with hashes if a wheel is pinned for every machine."""
    known = all(any(name.endswith(f"_{machine}.whl") for name in torch.wheels) for machine in machines)
    hashes = [f"--hash=sha256:{digest}" for digest in torch.wheels.values()] if known and machines else []
    return " \\\n  ".join([f"torch=={torch.version}", *hashes]) + "\n"


def wheel(root: Path) -> tuple[str, bytes]:
    """Return name and bytes of a wheel of the running fp4patch with its data.

    It works from a checkout, an editable install and an installed wheel, without a build backend or network.
    """
    package = Path(fp4patch.__file__).resolve().parent
    content = {f"fp4patch/{name}": data for name, data in _folder(package) if not name.startswith("data/")}
    for part in (*DATA, "dockerfiles"):
        content |= {f"fp4patch/data/{part}/{name}": data for name, data in _folder(root / part)}
    info = f"fp4patch-{fp4patch.__version__}.dist-info"
    metadata = importlib.metadata.distribution("fp4patch").read_text("METADATA")  # also an editable install has it
    content[f"{info}/METADATA"] = (metadata or "").encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: fp4patch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content[f"{info}/entry_points.txt"] = b"[console_scripts]\nfp4patch = fp4patch.__main__:main\n"
    content[f"{info}/RECORD"] = _record(content, f"{info}/RECORD")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content[name], zipfile.ZIP_DEFLATED)
    return f"fp4patch-{fp4patch.__version__}-py3-none-any.whl", archive.getvalue()


def _folder(folder: Path) -> list[tuple[str, bytes]]:
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _record(content: Mapping[str, bytes], own: str) -> bytes:
    rows = []
    for name, data in sorted(content.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    return ("\n".join([*rows, f"{own},,"]) + "\n").encode()
