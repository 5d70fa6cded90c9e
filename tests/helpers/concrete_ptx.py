"""A second, direct interpreter of packing PTX, over numbers: the reference for the symbolic one.

It shares nothing with ``fp4patch.edits.ptx``: text is cut with regular expressions, registers are Python integers, a
float is its bits, and the conversion computes the code.
"""

import random
import re
import struct
from collections.abc import Callable, Sequence

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SIZES = {"h": 16, "r": 32, "l": 64, "f": 32}


def e2m1(x: float) -> int:
    """Return the nibble of a number: the nearest magnitude, of two the one with the even code, and the sign."""
    best = min(range(8), key=lambda code: (abs(min(abs(x), 6.0) - MAGNITUDES[code]), code % 2))
    return best | (8 if struct.pack(">f", x)[0] & 0x80 else 0)


def bits(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def number(text: str) -> int:
    if text.startswith("0f"):
        return int(text[2:], 16)
    return int(text.removesuffix("U"), 0)


def run(template: str, outputs: str, inputs: Sequence[float]) -> list[int]:
    """Return the integers that the outputs, given by the letters of their constraints, hold afterwards."""
    text = re.sub(r"//.*|/\*[\s\S]*?\*/", " ", template)
    text = re.sub(r"%(\d+)", r"@\1", text).replace("%%", "%")
    width = {f"@{n}": SIZES[letter] for n, letter in enumerate(outputs)}
    value = {f"@{n + len(outputs)}": bits(x) for n, x in enumerate(inputs)}
    width |= dict.fromkeys(value, 32)
    text = re.sub(r"\{([^{};]*,[^{};]*)\}", lambda vector: "<" + vector[1].replace(",", "|") + ">", text)
    for line in re.split(r"[;{}]", text):  # scopes do not matter here: the programs give each register its own name
        words = line.split(None, 1)
        if not words:
            continue
        opcode, rest = words[0], words[1]
        if opcode == ".reg":
            kind, names = rest.split(None, 1)
            for name in (n.strip() for n in names.split(",")):
                width[name] = int(kind[2:])
            continue
        target, *sources = (part.strip() for part in rest.split(","))
        result = execute(opcode, sources, lambda name: value[name] if name in value else number(name), width)
        if target.startswith("<"):
            parts = [part.strip() for part in target[1:-1].split("|")]
            for part in parts:
                value[part] = result & (1 << width[part]) - 1
                result >>= int(opcode.rpartition(".")[2][1:]) // len(parts)
        else:
            value[target] = result & (1 << width[target]) - 1
    return [value[f"@{n}"] for n in range(len(outputs))]


def execute(opcode: str, sources: list[str], of: Callable[[str], int], width: dict[str, int]) -> int:
    name, *modifiers = opcode.split(".")
    if "e2m1x2" in modifiers:
        high, low = (struct.unpack("<f", struct.pack("<I", of(source)))[0] for source in sources)
        return e2m1(high) << 4 | e2m1(low)
    size = int(modifiers[-1][1:])
    if name == "mov" and sources[0].startswith("<"):
        elements = [element.strip() for element in sources[0][1:-1].split("|")]
        return sum(of(element) << n * size // len(elements) for n, element in enumerate(elements))
    assert name in ("mov", "cvt")
    return of(sources[0]) & (1 << size) - 1


class Program:
    """A random packing as PTX text: ``template``, the outputs' letters, and how many floats it takes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.registers: list[tuple[str, int]] = []
        self.names = rng.sample([f"{a}{b}" for a in ("b", "byte", "lo_", "$t", "%%q", "X") for b in range(60)], 300)
        self.outputs = "".join(rng.choice("hrl") for _ in range(rng.choice([1, 1, 1, 2, 3])))
        self.count = rng.randint(1, 18)
        for n, letter in enumerate(self.outputs):
            self.fill(f"%{n}", SIZES[letter])
        self.template = self.render()

    def new(self, width: int) -> str:
        name = self.names.pop()
        self.registers.append((name, width))
        return name

    def say(self, opcode: str, *operands: str) -> None:
        self.lines.append(f"{opcode}{self.space()} {','.join(self.space() + o + self.space() for o in operands)};")

    def space(self) -> str:
        return self.rng.choice(["", "", " ", "  ", "\t", "/* , */"])

    def source(self) -> str:
        """Return a float: an input, one that was moved to a register, or the constant zero."""
        text = f"%{len(self.outputs) + self.rng.randrange(self.count)}"
        if self.rng.random() < 0.05:
            return "0f00000000"
        if self.rng.random() < 0.1:
            name = self.new(32)
            self.say(self.rng.choice(["mov.f32", "mov.b32"]), name, text)
            return name
        return text

    def byte(self) -> str:
        name = self.new(8)
        self.say("cvt.rn.satfinite.e2m1x2.f32", name, self.source(), self.source())
        return name

    def fill(self, target: str, width: int) -> None:
        """Write E2M1 codes and zeros to a register or operand of that width, in one of many ways."""
        rng = self.rng
        way = rng.choice(["pack", "pack", "pack", "widen", "copy", "unpack"])
        if way == "pack" or (way == "unpack" and width == 16):
            parts = rng.choice([n for n in (2, 4) if width // n in (8, 16, 32)])
            self.say(f"mov.b{width}", target, "{" + ", ".join(self.of(width // parts) for _ in range(parts)) + "}")
        elif way == "widen":
            narrow = rng.choice([n for n in (8, 16, 32) if n < width])
            wider = rng.choice([narrow, *(n for n in (16, 32) if n > narrow)])  # cvt takes the low bits of those
            self.say(f"cvt.u{width}.u{narrow}", target, self.of(wider))
        elif way == "copy":
            self.say(f"mov.{rng.choice('bu')}{width}", target, self.of(width))
        else:
            low, high = self.new(width // 2), self.new(width // 2)
            self.say(f"mov.b{width}", "{" + f"{low}, {high}" + "}", self.of(width))
            self.say(f"mov.b{width}", target, "{" + f"{high}, {low}" + "}")

    def of(self, width: int) -> str:
        if width == 8:
            return self.byte()
        name = self.new(width)
        self.fill(name, width)
        return name

    def render(self) -> str:
        """Return declarations in one of the styles, in front or in an outer scope, then the instructions."""
        rng, declared = self.rng, []
        kinds = {8: "b", 16: rng.choice("bu"), 32: "b", 64: rng.choice("bu")}  # 32 bits may hold floats
        for width in (8, 16, 32, 64):
            names = [name for name, of in self.registers if of == width]
            while names:
                some, names = names[: (taken := rng.choice([1, 2, len(names)]))], names[taken:]
                declared.append(f".reg .{kinds[width]}{width}{' '}{(',' + self.space()).join(some)};")
        end = rng.choice(["\n", "\n\t", " ", "\n// cvt.rn.satfinite.e2m1x2.f32 no, x, y;\n"])
        body = end.join(self.lines)
        match rng.randrange(3):
            case 0:
                return "{\n" + end.join(declared) + end + body + "\n}"
            case 1:
                return "{" + end.join(declared) + "\n{ " + body + "}\n}\n"
        return end.join(declared) + end + body
