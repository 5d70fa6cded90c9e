"""Whole layers of a patched tree, executed without a GPU: ``verify --layers``.

The tree's own host code runs, with stand-ins for PyTorch. What it launches is executed, and the results are compared
with NumPy: bit for bit where the order of sums is known, else within rounding.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fp4patch.catalog.probe import Layer
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ToolchainError
from fp4patch.core.process import Runner
from fp4patch.core.progress import Step
from fp4patch.core.results import Verdict, verdict_on
from fp4patch.proof.probe import Compilation, Compiler
from fp4patch.proof.result import Check, ProbeResult
from fp4patch.proof.subject import Means, Subject
from fp4patch.proof.toolchain import INSTALL
from fp4patch.proof.view import Side
from fp4patch.reference.block_scaled import product, swizzled
from fp4patch.reference.formats import bfloat16, e4m3_decode, e4m3_encode, unpack
from fp4patch.reference.quantize import quantize
from fp4patch.sass import Array, HostProgram, SassError, link, read_cubin


def execute_layers(subject: Subject, means: Means) -> tuple[ProbeResult, ...]:
    """Return a row for each layer and target, with a check for each shape."""
    return tuple(_rows(subject, means)) if subject.layers else ()


def _rows(subject: Subject, means: Means) -> Iterator[ProbeResult]:
    with tempfile.TemporaryDirectory(prefix="fp4patch-layers-") as scratch:
        side = Side(subject.patched, subject.tree.target, Path(scratch, "patched"))
        for layer, source in subject.layers:
            unit = layer.unit
            for arch in filter(unit.is_for, subject.probes.archs):
                means.progress(Step(0, None, f"compiling and executing {unit.id} {arch}"))
                # Its own for each target: one compiler makes an object file's device code once for several.
                runner = Runner(subject.toolchain.environ)
                compiler = Compiler(subject.toolchain, subject.tree.target, runner, means.store, subject.headers)
                built = compiler.compile(unit, source, arch, side)
                folder = Path(tempfile.mkdtemp(dir=scratch))
                checks = tuple(_checks(layer, arch, built, compiler, folder))
                yield ProbeResult(unit.id, unit.title, arch, unit.kind, None, None, checks, built.error, built.cached)


def _checks(layer: Layer, arch: Arch, built: Compilation, compiler: Compiler, folder: Path) -> Iterator[Check]:
    """Yield what each shape came to: equal, or what differs, or why it did not run to its end."""
    if built.error:
        verdict = Verdict.UNSUPPORTED if built.unsupported else Verdict.FAIL
        yield Check("compiles", "without machine code nothing can be executed", verdict, "no")
        return
    because = "its machine code was executed, every kernel as its host code launches it"
    program = None
    for shape in layer.shapes:
        try:
            program = program or _program(built.content, arch, compiler, folder)
            wrong, detail = _COMPUTES[layer.computes](program, *shape)
            verdict = verdict_on(not wrong)
        except SassError as error:
            verdict, detail = Verdict.FAIL, "; ".join(filter(None, (error.message, error.help)))
        yield Check(f"equals NumPy's for {' x '.join(map(str, shape))}", because, verdict, detail)


def _program(content: bytes, arch: Arch, compiler: Compiler, folder: Path) -> HostProgram:
    toolchain = compiler.toolchain
    made = folder / "layer.o"
    file = folder / "layer"
    cuobjdump = toolchain.nvdisasm.with_name("cuobjdump")
    if not cuobjdump.is_file():
        raise ToolchainError(f"there is no {cuobjdump}, which layers need", help=f"install the toolkit: {INSTALL}")
    made.write_bytes(content)
    status, _, said = compiler.runner.run([cuobjdump, "-xelf", "all", made], scratch=folder)
    cubins = tuple(read_cubin(one, nvdisasm=toolchain.nvdisasm) for one in sorted(folder.glob("*.cubin")))
    if status or not cubins or any(cubin.arch != (arch.major, arch.minor) for cubin in cubins):
        raise SassError(f"the object file has no machine code for {arch}", help=said.strip())
    link([made], file, compiler=toolchain.host_compiler)
    return HostProgram(file, cubins)


def _nvfp4_linear(program: HostProgram, m: int, n: int, k: int) -> tuple[int, str]:
    """Return how many values of a layer differ, and a sentence.

    Arguments of the program are M, N and K, then the addresses of: activation and weight (bfloat16), their global
    scales, alpha; codes and scales of the activation, and of the weight, which it writes; the result (bfloat16).
    """
    rng = np.random.default_rng([m, n, k])
    given = [bfloat16((rng.normal(size=(rows, k)) * scale).astype(np.float32)) for rows, scale in ((m, 1.0), (n, 0.05))]
    scales = [np.float32(448 * 6 / np.abs(one).max()) for one in given]
    alpha = np.float32(1) / (scales[0] * scales[1])
    quantized = [quantize(one, scale, np.reciprocal) for one, scale in zip(given, scales, strict=True)]
    (a, a_scales), (b, b_scales) = ((unpack(codes), of_blocks) for codes, of_blocks in quantized)
    expected = [
        *(found for codes, of_blocks in quantized for found in (codes.tobytes(), swizzled(of_blocks).tobytes())),
        _stored(bfloat16(product(a, a_scales, b, b_scales) * alpha)),
    ]
    contents = [*map(_stored, given), *(one.tobytes() for one in (*scales, alpha))]
    read = [Array(place + 1 << 32, content) for place, content in enumerate(contents)]
    # Not zeros, which results can be: what is not written differs.
    written = [Array(place + 6 << 32, b"\xee" * len(one), writable=True) for place, one in enumerate(expected)]
    stored = program.run([m, n, k, *(one.address for one in (*read, *written))], [*read, *written], races=True)
    return _different(stored, expected, ("codes", "scales", "weight's codes", "weight's scales", "bytes of results"))


def _nvfp4_experts(program: HostProgram, m: int, n: int, k: int) -> tuple[int, str]:
    """Return how many values of a layer of three experts differ, and a sentence. The second one has no rows.

    Arguments of the program are M (all rows), N and K, the number of experts, the rows of their scales, then the
    addresses of: activation (bfloat16), its global scales, where the rows of each expert begin and where those of its
    scales do, M, N and K of each, codes and scales of the weights, alphas; codes and scales of the activation and the
    result (bfloat16), which it writes; and memory for what its host code allocates.
    """
    rng = np.random.default_rng([m, n, k])
    rows = [m // 4, 0, m - m // 4]
    given = [bfloat16(rng.normal(size=(one, k)).astype(np.float32)) for one in rows]
    weights = [bfloat16((rng.normal(size=(n, k)) * 0.05).astype(np.float32)) for _ in rows]
    scales, of_weights = (
        np.array([448 * 6 / np.abs(one).max(initial=1e-3) for one in side], np.float32) for side in (given, weights)
    )
    alphas = np.float32(1) / (scales * of_weights)
    fixed = [quantize(one, scale, np.reciprocal) for one, scale in zip(weights, of_weights, strict=True)]
    quantized, products = [], []
    for x, scale, (codes, of_blocks), alpha in zip(given, scales, fixed, alphas, strict=True):
        if len(x):
            quantized.append(quantize(x, scale, np.reciprocal))
            products.append(product(unpack(quantized[-1][0]), quantized[-1][1], unpack(codes), of_blocks) * alpha)
    padded = [-(-one // 128) * 128 for one in rows]
    begins, begins_of_scales = (np.cumsum([0, *one]).astype("<i4") for one in (rows, padded))
    sizes = np.array([(one, n, k) for one in rows], "<i4")
    unused = 0x7F  # NaN: scales of rows that no expert has are read, and must not matter
    expected = [
        np.concatenate([codes for codes, _ in quantized]).tobytes(),
        b"".join(
            np.where(swizzled(np.ones_like(one)) != 0, swizzled(one), unused).astype(np.uint8).tobytes()
            for _, one in quantized
        ),
        _stored(bfloat16(np.concatenate(products))),
    ]
    contents = [_stored(np.concatenate(given)), scales.tobytes(), begins.tobytes(), begins_of_scales.tobytes()]
    contents += [sizes.tobytes(), b"".join(codes.tobytes() for codes, _ in fixed)]
    contents += [b"".join(swizzled(of_blocks).tobytes() for _, of_blocks in fixed), alphas.tobytes()]
    read = [Array(place + 1 << 32, content) for place, content in enumerate(contents)]
    allocated = b"\xee" * (1 << 20)
    written = [
        Array(place + 20 << 32, content, writable=True)
        for place, content in enumerate([*(bytes([unused]) * len(one) for one in expected), allocated])
    ]
    numbers = [m, n, k, len(rows), int(begins_of_scales[-1]), *(one.address for one in (*read, *written))]
    *stored, _ = program.run(numbers, [*read, *written], races=True)
    return _different(stored, expected, ("codes", "scales", "bytes of results"))


def _fp8_block_linear(program: HostProgram, m: int, n: int, k: int) -> tuple[int, str]:
    """Return how many results of a product of FP8 matrices (E4M3) are too far from the exact ones, and a sentence.

    Arguments of the program are M, N and K, then the addresses of: A by rows, B by columns, the scales of 1 x 128
    values of A (M of each block of K), those of 128 x 128 of B (by columns), the result (bfloat16), which it writes.
    """
    rng = np.random.default_rng([m, n, k])
    codes = [e4m3_encode(rng.normal(size=(rows, k)) * 8) for rows in (m, n)]
    scales = [rng.uniform(0.5, 1.5, size=(rows, k // 128)).astype(np.float32) for rows in (m, n // 128)]
    a, b = (e4m3_decode(one).astype(np.float64) for one in codes)
    a *= np.repeat(scales[0], 128, axis=1)
    b *= np.repeat(np.repeat(scales[1], 128, axis=0), 128, axis=1)
    exact = a @ b.T
    # Half a unit of bfloat16, and 23 bits of float32, of which each of the sums loses some.
    bound = np.abs(exact) * 2.0**-8 + np.abs(a) @ np.abs(b).T * 2.0**-18
    contents = [codes[0].tobytes(), codes[1].tobytes(), scales[0].T.tobytes(), scales[1].tobytes()]
    arrays = [Array(place + 1 << 32, content) for place, content in enumerate(contents)]
    arrays.append(Array(5 << 32, b"\xff" * (2 * m * n), writable=True))  # NaN
    # Scales of rows beyond M are not copied to shared memory, and are read there. They must not matter.
    numbers = [m, n, k, *(one.address for one in arrays)]
    ((stored,), other) = (program.run(numbers, arrays, races=True, unwritten=True, poison=one) for one in (1, 2))
    results = (np.frombuffer(stored, "<u2").astype("<u4") << 16).view("<f4").reshape(m, n)
    near = np.abs(results - exact) <= bound
    wrong = int((~near).sum()) + (other != [stored])
    matters = ", and what nothing wrote matters" if other != [stored] else ""
    return wrong, f"{(~near).sum():,} of {near.size:,} results are beyond rounding{matters}"


def _different(stored: Sequence[bytes], expected: Sequence[bytes], parts: Sequence[str]) -> tuple[int, str]:
    wrong = {
        part: int((np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8)).sum())
        for part, one, other in zip(parts, stored, expected, strict=True)
    }
    differ = ", ".join(f"{count} {part}" for part, count in wrong.items() if count)
    return sum(wrong.values()), f"{differ or 'none'} of {sum(map(len, expected)):,} bytes differ"


def _stored(values: NDArray[np.float32]) -> bytes:
    """Return values of bfloat16 as in memory."""
    return (np.ascontiguousarray(values, dtype="<f4").view("<u4") >> 16).astype("<u2").tobytes()


_COMPUTES = {"nvfp4-linear": _nvfp4_linear, "nvfp4-experts": _nvfp4_experts, "fp8-block-linear": _fp8_block_linear}
