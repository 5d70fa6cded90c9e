"""Write docs/messages.md: messages of compilers and drivers, with cause and remedy, from fp4patch/doctor/messages.toml.

python -m tools.regenerate messages
"""

import re
import textwrap
from pathlib import Path

from fp4patch.doctor.messages import messages

PAGE = Path(__file__).parents[2] / "docs/messages.md"
_HEAD = """# Messages of compilers and drivers

Each heading is a message with which a build or a program for these GPUs ends. `fp4patch doctor build.log` (or `-` for
standard input) finds them in a log, with these words and the values of its lines. `python -m tools.regenerate messages`
writes this.

<!-- run by tests/doctor/test_messages.py: `fp4patch doctor build.log`, `python -m tools.regenerate messages` -->
<!-- run by tests/doctor: `fp4patch doctor --for sm_121 FILE` -->
<!-- not run, they are for a machine with that fault: `pip install -U nvidia-cutlass-dsl`,
`pip install -U nvidia-cudnn-cu13`,
`fp4patch doctor .venv`, `pip install -U torch --index-url https://download.pytorch.org/whl/cu130`,
`fp4patch doctor --arch-list 12.1a TREE`,
`pip install -U torch torchvision torchaudio --index-url https://download.pytorch.org/whl/cu130` -->
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
    for message in messages():
        link = f" ([thread]({message.link}))" if message.link else ""
        usual = re.search(message.pattern, message.title)
        values = usual.groupdict(default="") if usual else {}
        sentences = f"{_sentence(message.cause.format(**values))} {_sentence(message.remedy.format(**values))}{link}"
        body = textwrap.fill(sentences, 120, break_long_words=False, break_on_hyphens=False)
        text += f"\n## {message.title}\n\n{body}\n"
    return text + _TAIL


def _sentence(text: str) -> str:
    name, _, _ = text.partition(" ")
    return f"{text if name in ('vLLM', 'torch') else text[0].upper() + text[1:]}."


def main(_arguments: list[str]) -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
