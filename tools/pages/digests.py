"""Compute the digest that all results of each form of conversion must have.

``python -m tools.regenerate digests`` writes records/digests.json, with which ``fp4patch evidence`` compares results of
GPUs (two minutes). Forms of 2^24 records or fewer come from ``fp4patch.reference``. The others come from intervals of
inputs with one result, by exact fractions: a C program then only adds. Neither compares with thresholds value by value,
as the program on the GPU does.
"""

import json
import struct
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4patch.catalog.manifest import load
from fp4patch.catalog.probe import BITS, Executes, ProbeKind, stored_bits
from fp4patch.commands.evidence.forms import DIGESTS, MOST, Form, tables
from fp4patch.core.document import SCHEMA
from fp4patch.proof.execution.chosen_inputs import _converted, values_of
from fp4patch.proof.specification import MAGNITUDES, specification
from fp4patch.reference.formats import e2m1_encode_stochastic

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "fp4patch/commands/evidence/program"
APART = 0x9E3779B1
"""Distance of neighbouring lanes' inputs."""
SMALL = 24

_ADDS = """\
#include <stdio.h>
#include "conversion.h"
int main(void) {
  uint64_t sum = 0, first, last, shift, count, value[256];
  unsigned word;
  char kind;
  while (scanf(" %c %u %lu %lu", &kind, &word, &first, &last) == 4) {
    if (scanf("%lu %lu", &shift, &count) != 2 || count > 256) return 1;
    for (unsigned i = 0; i < count; ++i) if (scanf("%lu", &value[i]) != 1) return 1;
    for (uint64_t n = first; n < last; ++n) sum += mixed(n, (uint32_t)value[n >> shift & (count - 1)], word);
  }
  printf("%016lx\\n", sum);
}
"""


def forms() -> list[Form]:
    """Return the forms of all probes whose inputs are not too many, in the order of their names."""
    probes = [probe for patch in load().patches.values() for probe in patch.probes]
    found = {Form.of(probe.executes) for probe in probes if probe.executes and probe.kind is ProbeKind.SASS}
    return sorted((form for form in found if form.space <= MOST), key=lambda form: form.name)


def small(form: Form) -> int:
    """Return the digest by the NumPy reference, of all records at once."""
    records = np.arange(1 << form.space, dtype=np.uint64)
    lanes = []
    for lane in range(form.lanes):
        if BITS[form.input] < 16:
            fields = records >> np.uint64(BITS[form.input] * lane)
            codes: NDArray[Any] = (fields & np.uint64(2 ** BITS[form.input] - 1)).astype(np.uint8)
        else:
            places = records + np.uint64(lane * APART) & np.uint64((1 << form.space) - 1)
            codes = (places & np.uint64(0xFFFF)).astype(np.uint16)
        if form.stochastic:
            random = (places >> np.uint64(16)).astype(np.uint8)
            lanes.append(e2m1_encode_stochastic(values_of(form.input, codes), random))
        else:
            lanes.append(_converted(Executes(input=form.input, output=form.output, lanes=form.lanes), codes))
    total, bits = 0, stored_bits(form.output)
    each = 32 // bits
    for word in range(-(-form.lanes // each)):
        content = np.zeros(len(records), dtype=np.uint64)
        for k, one in enumerate(lanes[word * each : (word + 1) * each]):
            content |= one.astype(np.uint64) << np.uint64(bits * k)
        total += int(_mixed(records, content, word).sum(dtype=np.uint64))
    return total % (1 << 64)


def _mixed(record: NDArray[np.uint64], content: NDArray[np.uint64], word: int) -> NDArray[np.uint64]:
    z = record * np.uint64(0x9E3779B97F4A7C15) + content * np.uint64(0xD6E8FEB86659FD93)
    z = z + np.uint64(word * 0xA0761D6478BD642F % (1 << 64))
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ z >> np.uint64(31))


def large(form: Form, adds: Path) -> int:
    """Return the digest by intervals of records whose results are the same, which the C program adds."""
    done = subprocess.run([adds], input="\n".join(records_of(form)), capture_output=True, text=True, check=True)
    return int(done.stdout, 16)


def records_of(form: Form) -> Iterator[str]:
    """Yield lines for the C program: word, first record, end, and the word's content by bits of the record's number."""
    return _narrow(form) if BITS[form.input] < 16 else _intervals(form)


def _narrow(form: Form) -> Iterator[str]:
    bits, stored = BITS[form.input], stored_bits(form.output)
    each = 32 // stored
    for word in range(-(-form.lanes // each)):
        fields = np.arange(1 << bits * each)
        values = [0] * len(fields)
        for k in range(each):
            codes = (fields >> bits * k & (1 << bits) - 1).astype(np.uint8)
            one = _converted(Executes(input=form.input, output=form.output, lanes=1), codes)
            values = [have | int(more) << stored * k for have, more in zip(values, one, strict=True)]
        yield f"t {word} 0 {1 << form.space} {bits * each * word} {len(values)} {' '.join(map(str, values))}"


def _intervals(form: Form) -> Iterator[str]:
    if form.stochastic:
        parts = [stochastic_starts(random) for random in (0, 0, 255, 255)]
        starts = [(first + (choice << 32), code) for choice, part in enumerate(parts) for first, code in part]
    else:
        starts = [(interval.first, interval.code) for interval in specification(form.output)]
    firsts, codes = [first for first, _ in starts], [code for _, code in starts]
    bits, all_records = stored_bits(form.output), 1 << form.space
    each = 32 // bits
    for word in range(-(-form.lanes // each)):
        lanes = range(word * each, min((word + 1) * each, form.lanes))
        edges = sorted({0, all_records} | {(first - lane * APART) % all_records for first in firsts for lane in lanes})
        for first, last in pairwise(edges):
            value = 0
            for lane in lanes:
                at = bisect_right(firsts, (first + lane * APART) % all_records) - 1
                value |= codes[at] << bits * (lane - lanes[0])
            yield f"s {word} {first} {last} 0 1 {value}"


def stochastic_starts(random: int) -> list[tuple[int, int]]:
    """Return the first input of each interval of float32 with one result for a random byte, and that result."""
    found = [(0, 0)]
    for code, (below, above) in enumerate(pairwise(MAGNITUDES), start=1):
        least = above - random / 256 * (above - below)
        low = 0
        high = 0x7F80_0000
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if struct.unpack("<f", struct.pack("<I", middle))[0] >= least else (middle + 1, high)
            )
        found.append((low, code))
    sign = 1 << 31
    nan = 0x7F80_0001
    return [*found, (nan, 7), *((first | sign, code | 8) for first, code in found), (nan | sign, 7)]


def main(_arguments: list[str]) -> None:
    """Write the record."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "tables.h").write_text(tables(), encoding="utf-8")
        (work / "adds.c").write_text(_ADDS, encoding="utf-8")
        command = ["gcc", "-O3", "-march=native", "-w", f"-I{PROGRAM}", f"-I{work}", "-o", "adds", "adds.c"]
        subprocess.run(command, cwd=work, check=True)
        for form in forms():
            digest = small(form) if form.space <= SMALL else large(form, work / "adds")
            made[form.name] = f"{digest:016x}"
    document = {"schema": SCHEMA, "digests": made}
    (ROOT / DIGESTS).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
