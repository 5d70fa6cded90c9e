"""Train a network of two layers by TransformerEngine's NVFP4 recipe, with its patched kernels, beside bfloat16.

Usage: train.py LIBRARY OUT: OUT gets train.json. The student has the shape of a random teacher and sees new inputs in
each step. Recipe: activations and weights to nearest, weights in squares of 16 x 16, gradients stochastically, both
operands of the weights' gradient after the random Hadamard transform. Both layers are quantized; what an optimizer sees
is float32. The products are those of the dequantized values, in float32.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bridge
import torch

INPUT, HIDDEN, OUTPUT, BATCH, STEPS, RATE = 512, 2048, 512, 2048, 1500, 1e-3
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def peak(x: torch.Tensor) -> torch.Tensor:
    """Return the largest magnitude."""
    return x.abs().max().float().reshape(1)


def values(data: torch.Tensor, scales: torch.Tensor, amax: torch.Tensor) -> torch.Tensor:
    """Return what payload, block scales and the tensor's scale stand for."""
    table = torch.tensor([*VALUES, *(-v for v in VALUES)], device="cuda")
    codes = torch.stack([data & 15, data >> 4], dim=-1).reshape(data.shape[0], -1)
    blocks = scales[: codes.shape[0], : codes.shape[1] // 16].contiguous().view(torch.float8_e4m3fn).float()
    whole = (table[codes.long()].reshape(*blocks.shape, 16) * blocks[..., None]).reshape(codes.shape)
    return whole * torch.where(amax > 0, amax / (448 * 6), torch.ones_like(amax))


@dataclass
class Recipe:
    """Quantization of a layer's operands. ``gradients``: stochastic, nearest, or the zeros of unpatched kernels."""

    library: Any
    gradients: str
    draws: int = 0

    def rows(self, x: torch.Tensor, *, gradient: bool = False) -> torch.Tensor:
        """Quantize along the rows, and return the values."""
        amax = peak(x)
        state = None
        if gradient and self.gradients != "nearest":
            self.draws += 1
            state = bridge.random_state(1234, 4096 * self.draws)
        out = bridge.quantize(self.library, bridge.TUNED, x, amax, columns=False, state=state)
        assert out.data is not None
        assert out.scales is not None
        if gradient and self.gradients == "zeros":
            out.data.zero_()
        return values(out.data, out.scales, amax)

    def turned(self, x: torch.Tensor, *, gradient: bool = False) -> torch.Tensor:
        """Quantize the transformed transpose along its rows, and return the values."""
        return self.rows(bridge.hadamard(self.library, x), gradient=gradient)

    def weights(self, w: torch.Tensor) -> torch.Tensor:
        """Quantize in squares, and return the values."""
        amax = peak(w)
        out = bridge.quantize(self.library, bridge.SQUARES, w, amax, columns=False)
        assert out.data is not None
        assert out.scales is not None
        return values(out.data, out.scales, amax)


class Layer(torch.autograd.Function):  # type: ignore[misc]
    """``x @ w.T`` in NVFP4, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, recipe: Recipe) -> torch.Tensor:
        """Multiply."""
        x, quantized = x.bfloat16().contiguous(), recipe.weights(w.bfloat16())
        ctx.save_for_backward(x, quantized)
        ctx.recipe = recipe
        return recipe.rows(x) @ quantized.T

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return both gradients."""
        x, quantized = ctx.saved_tensors
        dy = dy.bfloat16().contiguous()
        dx = ctx.recipe.rows(dy, gradient=True) @ quantized
        dw = ctx.recipe.turned(dy, gradient=True) @ ctx.recipe.turned(x).T
        return dx, dw, None


class Bfloat16(torch.autograd.Function):  # type: ignore[misc]
    """``x @ w.T`` with operands in bfloat16 and products in float32, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, _recipe: None) -> torch.Tensor:
        """Multiply."""
        x, w = x.bfloat16().float(), w.bfloat16().float()
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return both gradients."""
        x, w = ctx.saved_tensors
        dy = dy.bfloat16().float()
        return dy @ w, dy.T @ x, None


def weights(generator: torch.Generator) -> list[torch.Tensor]:
    """Return random weights of both layers."""
    shapes = ((HIDDEN, INPUT), (OUTPUT, HIDDEN))
    return [torch.randn(rows, columns, generator=generator, device="cuda") / columns**0.5 for rows, columns in shapes]


def train(recipe: Recipe | None, seed: int) -> list[float]:
    """Return the loss of each step, divided by the variance of the teacher's answers."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    first, second = weights(generator)
    student = [w.requires_grad_() for w in weights(generator)]
    optimizer = torch.optim.Adam(student, lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=RATE / 100)
    layer = Bfloat16 if recipe is None else Layer
    losses = []
    for _ in range(STEPS):
        x = torch.randn(BATCH, INPUT, generator=generator, device="cuda")
        with torch.no_grad():
            target = torch.relu(x @ first.T) @ second.T
        answer = layer.apply(torch.relu(layer.apply(x, student[0], recipe)), student[1], recipe)
        loss = torch.nn.functional.mse_loss(answer, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append((loss.detach() / target.var()).reshape(1))
    found: list[float] = torch.cat(losses).tolist()
    return found


def main(library_path: str, out: str) -> None:
    """Train each way from the same start, and write the losses after each."""
    torch.backends.cuda.matmul.allow_tf32 = False
    library = bridge.loaded(Path(library_path))
    found: dict[str, Any] = {
        "network": [INPUT, HIDDEN, OUTPUT],
        "batch": BATCH,
        "steps": STEPS,
        "rate": RATE,
        "device": torch.cuda.get_device_name(),
        "curves": {},
        "seconds": {},
    }
    for name, recipe in (
        ("bfloat16", None),
        ("NVFP4", Recipe(library, "stochastic")),
        ("NVFP4, gradients zero", Recipe(library, "zeros")),
        ("NVFP4, gradients to nearest", Recipe(library, "nearest")),
    ):
        start = time.monotonic()
        try:
            losses = train(recipe, seed=7)
        except Exception as error:  # one curve that fails must not take the others along
            losses = []
            found.setdefault("failed", {})[name] = repr(error)
        # Means of ten steps, which is what the picture shows.
        found["curves"][name] = [round(sum(losses[at : at + 10]) / 10, 6) for at in range(0, len(losses), 10)]
        found["seconds"][name] = round(time.monotonic() - start, 2)
        Path(out, "train.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
