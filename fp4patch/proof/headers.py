"""Headers of other projects that a probe takes in earnest: where they are located on this machine.

Only PyTorch's so far. They are looked for and not imported: importing PyTorch takes seconds.
"""

import importlib.util
from pathlib import Path

from fp4patch.core.errors import UsageError

_OF_TORCH = "c10/util/Half.h"
"""A header that every release of PyTorch has had in its include directory."""


def find_headers(torch_include: Path | None) -> dict[str, tuple[Path, ...]]:
    """Return the include directories at hand, by the names that a probe's ``uses`` has.

    ``torch_include`` is PyTorch's include directory; None: that of an installed PyTorch, if there is one. UsageError if
    it holds no such headers.
    """
    folder = torch_include.resolve() if torch_include else installed_torch()
    if folder is None:
        return {}
    if not (folder / _OF_TORCH).is_file():
        raise UsageError(
            f"{folder} does not hold PyTorch's headers",
            help="name the directory that holds c10 and torch, for example site-packages/torch/include",
        )
    return {"torch": (folder, folder / "torch/csrc/api/include")}


def installed_torch() -> Path | None:
    """Return the include directory of the PyTorch that this Python would import."""
    spec = importlib.util.find_spec("torch")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place) / "include").joinpath(_OF_TORCH).is_file():
            return folder
    return None
