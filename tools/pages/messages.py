"""Write docs/messages.md: messages of compilers and drivers, with cause and remedy, from fp4patch/doctor/messages.toml.

python -m tools.regenerate messages
"""

import textwrap
from pathlib import Path

from fp4patch.doctor.messages import messages

PAGE = Path(__file__).parents[2] / "docs/messages.md"
_HEAD = """# Messages of compilers and drivers

Each heading is a message with which a build or a program for these GPUs ends. `fp4patch doctor build.log` (or `-` for
standard input) finds the first of them in a log, with these words. `python -m tools.regenerate messages` writes this.
"""
_TAIL = """
## Macros of the targets

nvcc defines `__CUDA_ARCH_FEAT_SM121_ALL` for `sm_121a` alone, `__CUDA_ARCH_SPECIFIC__` for each target with the suffix
`a`, and `__CUDA_ARCH_FAMILY_SPECIFIC__` for each target with `a` or `f`. A target without a suffix has none of them.
`__CUDA_ARCH__` is 1210 for each target of SM121, and 1200 for `sm_120f`.
"""


def page() -> str:
    """Return the page."""
    text = _HEAD
    for one in messages():
        link = f" ([thread]({one.link}))" if one.link else ""
        cause = one.cause[0].upper() + one.cause[1:]
        remedy = one.remedy[0].upper() + one.remedy[1:]
        body = textwrap.fill(f"{cause}. {remedy}.{link}", 120, break_long_words=False, break_on_hyphens=False)
        text += f"\n## {one.title}\n\n{body}\n"
    return text + _TAIL


def main(_arguments: list[str]) -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
