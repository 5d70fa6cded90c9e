"""The expected digests of ``fp4patch evidence``, which the reference and the kernels' own rule must both give."""

import subprocess
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest

from fp4patch.commands.evidence import kit
from fp4patch.commands.evidence.forms import Form, digests, tables
from fp4patch.reference.formats import e2m1_encode_stochastic
from tools.pages import digests as tool

PROGRAM = Path(kit.__file__).parent / "program"


def test_every_form_of_the_probes_has_a_digest() -> None:
    assert sorted(digests()) == [form.name for form in tool.forms()]


@pytest.mark.parametrize("form", [form for form in tool.forms() if form.space == 16], ids=lambda form: form.name)
def test_the_digests_of_16_bit_floats_are_the_references(form: Form) -> None:
    assert tool.small(form) == digests()[form.name]


HARNESS = """\
#include <stdio.h>
#include "conversion.h"
int main(void) {
  struct conversion c;
  unsigned long record;
  unsigned word;
  scanf("%u %u %u %u %u", &c.input, &c.output, &c.lanes, &c.stochastic, &c.space);
  while (scanf("%lu %u", &record, &word) == 2) printf("%u\\n", expected_word(&c, record, word));
}
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the words which the kernels of the kit expect."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "tables.h").write_text(tables())
    (folder / "words.c").write_text(HARNESS)
    subprocess.run(["cc", "-w", f"-I{PROGRAM}", "-I.", "-o", "words", "words.c"], cwd=folder, check=True)
    return folder / "words"


@pytest.mark.parametrize("form", [form for form in tool.forms() if form.space > tool.SMALL], ids=lambda form: form.name)
def test_the_intervals_of_large_forms_are_what_the_kernels_expect(form: Form, words: Path) -> None:
    """At both ends of each interval and at random records: the digests come from these intervals."""
    lines = [[int(part) for part in line.split()[1:]] for line in tool.records_of(form)]
    random = np.random.default_rng(1).integers(0, 1 << form.space, 2000)
    asked, expected = [], []
    for word in {line[0] for line in lines}:
        mine = [line for line in lines if line[0] == word]
        firsts = [line[1] for line in mine]
        ends = [record for line in mine for record in (line[1], line[2] - 1)]
        for record in [*ends[:20000], *map(int, random)]:
            _, _, _, shift, count, *values = mine[bisect_right(firsts, record) - 1]
            asked.append(f"{record} {word}")
            expected.append(values[record >> shift & count - 1])
    head = form.initializer.strip("{}").replace(",", "")
    done = subprocess.run([words], input="\n".join([head, *asked]), capture_output=True, text=True, check=True)
    assert list(map(int, done.stdout.split())) == expected


@pytest.mark.parametrize("random", [0, 255])
def test_the_intervals_of_stochastic_rounding_are_the_references(random: int) -> None:
    starts = tool.stochastic_starts(random)
    bits = np.array([first + by for first, _ in starts for by in (-1, 0, 1) if first + by >= 0], dtype=np.uint32)
    expected = e2m1_encode_stochastic(bits.view(np.float32), np.full(bits.shape, random, dtype=np.uint8))
    firsts = [first for first, _ in starts]
    assert [starts[bisect_right(firsts, int(one)) - 1][1] for one in bits] == expected.tolist()
