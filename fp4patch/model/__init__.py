"""The nouns, as frozen values without I/O. Every other module speaks in these.

A *variant* is data; a *tree* is a fold of its edits over the pristine source; nothing counts as applied until the
compiled machine code says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from fp4patch.model.execution import Executed

SCHEMA = 1
"""Version of every JSON document that fp4patch writes."""


# --- architectures ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Arch:
    """A GPU target of NVIDIA's compilers: ``sm_121a`` is ``Arch(12, 1, "a")``.

    The suffix matters more than anything else here: without ``a`` or ``f`` the FP4 instructions do not exist.
    """

    major: int
    minor: int
    suffix: Literal["", "a", "f"] = ""

    @classmethod
    def parse(cls, text: str) -> Arch:
        """``sm_121a``, ``compute_121a``, ``121a`` and PyTorch's ``12.1a`` all name one target; else ValueError."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})(\.?)(\d)([af]?)", text.strip())
        if not found or not 5 <= int(found[1]) < 100:
            raise ValueError(f"{text!r} is not a GPU architecture; write for example sm_121a or 12.1a")
        return cls(int(found[1]), int(found[3]), found[4])  # type: ignore[arg-type]  # the pattern admits no other suffix

    @property
    def number(self) -> str:
        """``121a``."""
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def torch(self) -> str:
        """``12.1a``, as in TORCH_CUDA_ARCH_LIST."""
        return f"{self.major}.{self.minor}{self.suffix}"

    def __str__(self) -> str:
        return f"sm_{self.number}"


# --- states ----------------------------------------------------------------------------------------------------------


class State(StrEnum):
    """What a file, or a patch on a tree, is in. Closed: each knows whether an apply may go on."""

    PRISTINE = "pristine"
    """As upstream released it; the patch could be applied."""
    APPLIED = "applied"
    """Exactly what the variant's edits make of the pristine source."""
    OUTDATED = "outdated"
    """What an older version of the patch made; apply brings it up to date."""
    UPSTREAMED = "upstreamed"
    """The source has the change already: the patch retires itself."""
    NOT_NEEDED = "not-needed"
    """This release never had what the patch changes."""
    DRIFTED = "drifted"
    """The anchor is not there, or not as often as it must be: refused."""
    FOREIGN = "foreign"
    """Somebody edited the file since: refused."""

    @property
    def refused(self) -> bool:
        """Whether apply must leave the tree alone."""
        return self in (State.DRIFTED, State.FOREIGN)


class ApplyState(StrEnum):
    """What apply or revert did to a tree, or would do."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REVERTED = "reverted"
    REFUSED = "refused"


@dataclass(frozen=True)
class Problem:
    """One reason to refuse: where, what was expected, what was found, what is nearest, what to do."""

    expected: str
    found: str
    help: str = ""
    patch: str = ""
    file: str = ""
    line: int | None = None
    nearest: str = ""
    state: State | None = None


# --- data on disk ----------------------------------------------------------------------------------------------------


class Manifest:
    """A part of a TOML file: its keys are the fields of the dataclass, and no others are taken."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - read by name, on the class, by whoever validates


# --- edits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Retired(Manifest):
    """A sign in the pristine source that an edit has nothing to do, and why.

    ``tokens`` is C++ text compared token by token (white space, comments and continuations do not count); for edits of
    Python and CMake it is an expression or a command.
    """

    tokens: str
    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    since: str = ""
    because: str = ""


@dataclass(frozen=True, kw_only=True)
class DropOperand(Manifest):
    """Remove operands from the ``#if`` conditions whose body defines a macro.

    Each condition must be a disjunction of ``defined(NAME)``. ``conditions`` is how many such ``#if`` there are;
    each must lose exactly one operand. No condition that has one: not needed.
    """

    op: Literal["drop-operand"] = "drop-operand"
    file: str
    defines: str
    operands: tuple[str, ...]
    conditions: int
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Insert(Manifest):
    """Put a template before the declaration that starts with these tokens, ahead of its own comment.

    ``absent``: token sequences that must not occur in the pristine file, else the edit refuses. ``about``: a file
    without these tokens needs nothing, because of ``otherwise``.
    """

    op: Literal["insert"] = "insert"
    file: str
    before: str
    template: str
    absent: tuple[str, ...] = ()
    about: str = ""
    otherwise: str = ""
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WrapAsm(Manifest):
    """Give each inline-assembly statement that converts floats to E2M1 a software twin, and a guard that chooses.

    The files are found by content below ``search`` (globs, ``**`` allowed): upstream moves them. Two options, set by
    the variant: ``encoder``, a file ``<encoders>/<encoder>.cuh`` that holds ``namespace fp4patch_<encoder>``; and
    ``guard``, the preprocessor condition under which the software is compiled.
    """

    op: Literal["wrap-asm"] = "wrap-asm"
    search: tuple[str, ...]
    encoders: str
    """The folder of the encoders, relative to the patch's directory."""
    floor: str = ""
    """``__CUDA_ARCH__ >= 1000``: an ``#if`` of this alone, around code that does nothing, or returns zero, below it.

    Such a condition is opened to the software: ``|| (lowered && (guard))`` is added. One whose other branches do the
    work themselves stays, and so does one around assembly of another kind.
    """
    lowered: str = ""
    """``__CUDA_ARCH__ >= 900``: the oldest GPUs that have all else that stands above the floor."""
    allows: tuple[str, ...] = ()
    """What assembly above the floor may begin with, since these GPUs have it: ``griddepcontrol.``."""
    callers: tuple[str, ...] = ()
    """Names. A file that has one of them has such an ``#if`` as well, if it has no statement of its own."""
    unless: tuple[str, ...] = ()
    """Parts of PTX that is assembled for targets with a suffix alone. A file with one of them in a string can lose
    no suffix: it is left as it is."""
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Replacement(Manifest):
    """Something else in the place of ``find``, in each file below ``search`` that has what the edit is ``about``.

    A file without ``about`` is not one that this edit speaks of; a tree without such a file needs nothing, because of
    ``otherwise``, or drifted, if that is empty. A file with ``about`` must have ``find`` exactly ``count`` times, or
    else a sign that retires the edit; all else is drift.
    """

    search: tuple[str, ...]
    about: str
    otherwise: str = ""
    find: str
    replace: str
    count: int = 1
    retired: tuple[Retired, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReplaceTokens(Replacement):
    """A replacement of C++ tokens by others."""

    op: Literal["replace-tokens"] = "replace-tokens"
    within: str = ""
    """The tokens that a declaration begins with: sites and signs count only in its braces. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class ReplaceExpression(Replacement):
    """A replacement of a Python expression by another, in files that have the name ``about``.

    Expressions are compared by their syntax tree: layout, comments and parentheses do not count. What ``retired`` calls
    tokens is an expression here.
    """

    op: Literal["replace-expression"] = "replace-expression"
    within: str = ""
    """The name of a function. Empty: the whole file."""


@dataclass(frozen=True, kw_only=True)
class AddElement(Manifest):
    """Add ``element`` before the element ``beside`` of every CMake list that has the latter and not the former.

    The lists are what ``commands`` are given behind the name of the variable that they set: ``set(NAME "9.0a;12.0f")``,
    ``list(APPEND NAME "12.0f")``, ``f(NAME "9.0a;12.0f" …)``. All of them have ``element``: upstreamed. No such list:
    not needed, because of ``otherwise``, or drift, if that is empty.
    """

    op: Literal["add-element"] = "add-element"
    search: tuple[str, ...]
    commands: tuple[str, ...]
    variable: str = "*"
    """A glob."""
    but: tuple[str, ...] = ()
    """Globs of variables that are not meant."""
    beside: str
    element: str
    drop: tuple[str, ...] = ()
    """Elements that the new one stands in for: they leave the lists that get it."""
    since: str = ""
    """The release in which upstream's lists had the element."""
    otherwise: str = ""


@dataclass(frozen=True, kw_only=True)
class ReplaceCommand(Replacement):
    """A replacement of a CMake command's arguments, written out: ``elseif(ARCHS MATCHES "12\\\\.0a")``.

    Commands are compared by name and arguments. ``about`` is a command's name and first argument, ``set(ARCHS``, or the
    name alone. What ``retired`` calls tokens is a command.
    """

    op: Literal["replace-command"] = "replace-command"


@dataclass(frozen=True, kw_only=True)
class InsertCommands(Manifest):
    """Put a template of CMake commands behind the one command ``after`` in the body of a CMake function.

    A file without such a function is not meant: not needed, because of ``otherwise``. What ``retired`` calls tokens is
    a command in that body.
    """

    op: Literal["insert-commands"] = "insert-commands"
    search: tuple[str, ...]
    function: str
    otherwise: str = ""
    after: str
    template: str
    retired: tuple[Retired, ...] = ()


Edit = DropOperand | Insert | WrapAsm | ReplaceTokens | ReplaceExpression | AddElement | ReplaceCommand | InsertCommands


@dataclass(frozen=True)
class Rewritten:
    """An edit that applies: the new text, and the 1-based lines of the pristine text that it touched."""

    text: str
    lines: tuple[int, ...]
    notes: tuple[str, ...] = ()
    """What a reader should know of this place, beside that it was edited."""


@dataclass(frozen=True)
class NothingToDo:
    """An edit that retired itself."""

    state: Literal[State.UPSTREAMED, State.NOT_NEEDED]
    because: str
    since: str = ""
    elsewhere: bool = False
    """The edit searches for its files, and this is not one of them: it says nothing about this text."""


@dataclass(frozen=True)
class Drift:
    """An edit that refuses: its anchor is not what it must be."""

    expected: str
    found: str
    line: int | None = None
    nearest: str = ""
    help: str = ""


Outcome = Rewritten | NothingToDo | Drift


# --- patches, targets, variants --------------------------------------------------------------------------------------


class ProbeKind(StrEnum):
    """What a probe compiles to."""

    SASS = "sass"
    """Device code, disassembled and judged by the variant's rules."""
    UNIT = "unit"
    """Device code as SASS, but of all kernels of a whole source file of the tree: rules judge them together."""
    HOST = "host"
    """A whole object file, host pass included: it only has to compile."""


@dataclass(frozen=True, kw_only=True)
class Needs(Manifest):
    """What a tree must have for a probe to have something to show: a file, and C++ tokens in it if any are named."""

    search: tuple[str, ...]
    """Globs relative to the tree; ``**`` is allowed. One file is enough."""
    tokens: str = ""


@dataclass(frozen=True, kw_only=True)
class Executes(Manifest):
    """That a probe's kernel turns ``lanes`` values a thread into packed ``output``, value 0 lowest, and nothing else.

    Its parameters are two pointers, to the values and to what it stores; thread i of the grid reads and writes record
    i. One value alone has a byte of its own.
    """

    input: Literal["float32", "float16", "bfloat16"]
    lanes: Literal[1, 2, 4, 8, 16]
    output: Literal["e2m1"] = "e2m1"

    @property
    def bits(self) -> int:
        """Bits of an input: there are 2 to this power."""
        return 32 if self.input == "float32" else 16


@dataclass(frozen=True, kw_only=True)
class Probe(Manifest):
    """A small translation unit that makes the compiler show the code in question.

    ``source`` is a path below the patch's directory; ``defines`` become ``-D`` flags. A SASS probe has exactly one
    kernel, named ``probe``. A tree that has not what ``needs`` says has no use for the probe: that is said, and the
    probe does not run.
    """

    name: str
    title: str
    source: str
    kind: ProbeKind = ProbeKind.SASS
    defines: dict[str, str | int] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    """Include folders below the patch's directory, searched after the tree's: stand-ins for headers it relies on."""
    uses: tuple[Literal["torch"], ...] = ()
    """Headers of others that it takes in earnest. Where they are not at hand it does not run, and that is said."""
    needs: Needs | None = None
    slow: bool = False
    """The compiler takes minutes for it: it runs only if asked for (``verify --all``)."""
    executes: Executes | None = None
    """What its kernel computes, for the machine code to be executed. None: it is only looked at."""
    patch: str = ""
    """Set by the loader: ``cutlass/e2m1-guard``."""

    @property
    def id(self) -> str:
        """``cutlass/e2m1-x8``: unique in the catalog; what rules select by."""
        return f"{self.patch.partition('/')[0]}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Numerics(Manifest):
    """A function of the tree that makes E2M1 of floats, for all 2^32 inputs to be run through it.

    ``source`` is a header below the patch's directory that makes it callable; ``expression`` is C++ whose value is the
    packed nibbles, value 0 lowest, of ``v``, a ``const float (&)[lanes]``. A tree that has not what ``needs`` says has
    no such function.
    """

    name: str
    """As a user of the tree would call it: ``NumericArrayConverter<float_e2m1_t, float, 8>``."""
    lanes: Literal[1, 2, 4, 8, 16]
    source: str
    expression: str
    include: tuple[str, ...] = ()
    """Include folders below the patch's directory, searched after the tree's."""
    host: Literal["no", "yes", "if-asked"] = "no"
    """Whether it is host code as well; ``if-asked`` if running all inputs there takes a minute or more."""
    bench: bool = False
    """What ``fp4patch bench`` measures of a tree: eight values."""
    needs: Needs | None = None


@dataclass(frozen=True, kw_only=True)
class Patch(Manifest):
    """One change with one reason: its edits, the versions it was tried on, its probes, and why it exists."""

    name: str
    target: str
    version: str
    title: str
    reason: str
    link: str
    applies: str
    """A version specifier (PEP 440) of upstream releases that this patch was tried on. Advice; anchors decide."""
    retire: str
    """When this patch may be deleted."""
    edits: tuple[Edit, ...]
    probes: tuple[Probe, ...] = ()
    numerics: tuple[Numerics, ...] = ()
    directory: str = ""
    """Set by the loader: where templates, probes and cases lie."""

    @property
    def id(self) -> str:
        """``cutlass/e2m1-guard``."""
        return f"{self.target}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class VersionMacros(Manifest):
    """A header that states the release as three macros. It may lie: anchors decide, the version advises."""

    file: str
    major: str
    minor: str
    patch: str


@dataclass(frozen=True, kw_only=True)
class VersionPattern(Manifest):
    """Files that state the release as text. The first file that has a match of ``pattern`` says it, as group 1."""

    files: tuple[str, ...]
    pattern: str
    """A regular expression, searched with ``^`` and ``$`` at each line."""


@dataclass(frozen=True, kw_only=True)
class Archive(Manifest):
    """A pinned package-index file that holds a release's source tree."""

    versions: tuple[str, ...]
    """The upstream releases that this archive's tree serves as."""
    project: str
    filename: str
    sha256: str
    subtree: str
    """The folder inside the archive that becomes the tree; ``""`` for all of it (one leading folder is dropped)."""
    holds: str = ""
    """What exactly is inside, where it is not the tagged tree itself."""


@dataclass(frozen=True, kw_only=True)
class Advice(Manifest):
    """Which variant to take when none is named. The first of a target's that fits release and toolkit counts."""

    versions: str = ""
    """A specifier (PEP 440) of releases; empty for all."""
    cuda: str = ""
    """A specifier of CUDA releases (13.0); empty for all. Advice that has one does not fit an unknown toolkit."""
    variant: str = ""
    """Empty: none is needed."""
    because: str


@dataclass(frozen=True, kw_only=True)
class Build(Manifest):
    """How a tree's own build chooses the architectures of its FP4 kernels; ``fp4patch doctor`` runs it."""

    kind: Literal["cmake"]
    """The CMakeLists.txt at the top, with PyTorch's way of naming architectures."""
    setting: str
    """The environment variable that names the architectures."""
    lists: tuple[str, ...]
    """What people set it to, for SM120 and SM121; looked at where no other list is asked for."""
    cuda: tuple[str, ...]
    """CUDA releases to look at where none is known."""
    kernels: str
    """A regular expression, searched in a source's path: those that hold the FP4 kernels for SM12x."""


@dataclass(frozen=True, kw_only=True)
class Gate(Manifest):
    """The condition by which a header lets a GPU use the FP4 conversion instruction."""

    gpu: str
    """``sm_121``."""
    file: str
    defines: str
    """The macro that turns the instruction on."""
    operands: tuple[str, ...]
    """What the ``#if`` conditions that define it must name for this GPU."""
    conditions: int
    otherwise: str
    """What the header does for this GPU without it."""


@dataclass(frozen=True, kw_only=True)
class Contained(Manifest):
    """Another target's tree inside a tree: what is done to the one is done to the other, in the same transaction."""

    target: str
    at: tuple[str, ...]
    """Folders, relative to the tree, where it may lie."""


@dataclass(frozen=True, kw_only=True)
class Bypass(Manifest):
    """Compiled code that is used in the place of a tree's sources. What it was made of, no edit reaches."""

    paths: tuple[str, ...]
    """Globs; relative to the tree, or to the home folder if they begin with ``~``. ``{version}`` is the tree's."""
    instead: str = ""
    """The environment variable that names another folder in the place of the home folder."""
    because: str
    """Said where one is there: what it means, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Target(Manifest):
    """A kind of source tree: how to recognise it, read its version, compile against it and fetch it."""

    name: str
    title: str
    marks: tuple[str, ...]
    """Files that together make a folder a tree of this kind."""
    other_marks: tuple[tuple[str, ...], ...] = ()
    """The same for each other layout of it: a checkout, where ``marks`` are those of an installed package."""
    version: VersionMacros | VersionPattern
    include: tuple[str, ...]
    """Include folders, relative to the tree, to compile a probe against it."""
    compile: tuple[str, ...] = ()
    """Further compiler flags for its probes."""
    found_in: tuple[str, ...] = ()
    """Where a tree of this kind lies below other people's folders; used to say 'did you mean'."""
    git: str
    tag: str
    """``v{version}``."""
    archives: tuple[Archive, ...] = ()
    commits: dict[str, str] = field(default_factory=dict)
    """Releases that no archive holds, by the commit (40 hex digits) that their tag must name."""
    advice: tuple[Advice, ...] = ()
    telling: tuple[str, ...] = ()
    """Files by whose content releases are told apart, whatever a tree states. Not every release has all of them."""
    build: Build | None = None
    gates: tuple[Gate, ...] = ()
    contains: tuple[Contained, ...] = ()
    distribution: str = ""
    """The project whose installed package the tree may be: its RECORD, beside the tree, states each file's hash."""
    bypasses: tuple[Bypass, ...] = ()

    def missing(self, has: Callable[[str], bool]) -> list[str]:
        """The marks that are not there, of the layout that most are there of; none: this is a tree of this kind."""
        return min(([mark for mark in marks if not has(mark)] for marks in (self.marks, *self.other_marks)), key=len)


class Promise(StrEnum):
    """How near to ``cvt.rn.satfinite.e2m1x2.f32`` an encoder promises to be, over all 2^32 inputs."""

    EXACT = "exact"
    """The same nibble for every input."""
    EXACT_BUT_NAN_SIGN = "exact-but-nan-sign"
    """The same, but a NaN becomes 6 with a sign of its own, where the instruction gives +6."""


@dataclass(frozen=True, kw_only=True)
class Rule(Manifest):
    """What the machine code of some probes must satisfy on some architectures.

    ``probes`` are globs over probe ids, ``requires`` and ``forbids`` regular expressions searched in
    ``OPCODE.MODIFIERS`` of each instruction, ``max`` upper bounds of metrics (``instructions``, ``branches``,
    ``local``, ``f64``, ``registers``). All of it is about the patched tree; ``identical`` compares both trees' code
    byte for byte.
    """

    probes: tuple[str, ...]
    arch: tuple[str, ...]
    because: str
    identical: bool = False
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    max: dict[Literal["instructions", "branches", "local", "f64", "registers"], int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class VariantTarget(Manifest):
    """A variant's ordered patches for one target, and their options."""

    patches: tuple[str, ...]
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    watches: tuple[str, ...] = ()
    """Patches that it leaves out and whose probes run all the same: what they would change has rules here, too."""


@dataclass(frozen=True, kw_only=True)
class TorchPin(Manifest):
    """The PyTorch that vLLM is compiled against and runs with."""

    version: str
    """With its local version where the plain one would also name a build without CUDA: ``2.10.0+cu130``."""
    wheels: dict[str, str] = field(default_factory=dict)
    """SHA-256 (hex) of each file that may be installed. Empty: none is known, and the version alone holds."""
    index: str = ""
    """In words, where it comes from, if not from the general package index."""


@dataclass(frozen=True, kw_only=True)
class Pins(Manifest):
    """What an image of a variant is built from. Hashes of vLLM and CUTLASS stand in their target, by release."""

    vllm: str
    cutlass: str
    cuda: str
    """The release of the toolkit: ``13.0.2``."""
    torch: TorchPin
    base: str
    """The image that compiles: ``name:tag@sha256:digest``."""
    runtime: str
    """The image that the built vLLM runs in."""


@dataclass(frozen=True, kw_only=True)
class Variant(Manifest):
    """A named list of patches, the architectures it is for, and the rules its machine code must satisfy."""

    name: str
    title: str
    summary: str
    cost: str
    """One line: what this variant costs on a target that has the instruction."""
    arch: tuple[str, ...]
    targets: dict[str, VariantTarget]
    promise: Promise = Promise.EXACT
    """What its conversions come to over all 2^32 inputs, wherever they are software."""
    rules: tuple[Rule, ...] = ()
    image: Pins | None = None
    """None: no image is built of it."""


# --- proof -----------------------------------------------------------------------------------------------------------


class Verdict(StrEnum):
    """What a judgement came to. Closed: a thing that was not checked is a failure, never a pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """This toolchain cannot compile for that architecture at all: said, and counted as a failure of the whole."""

    @property
    def failed(self) -> bool:
        """Whether this fails the verdict as a whole."""
        return self is not Verdict.PASS


class InstructionClass(StrEnum):
    """What an instruction is for, as the metrics, the diff and the report's colours see it."""

    FP4 = "fp4"
    """Conversions to or from E2M1 (F2FP…E2M1…)."""
    CONVERT = "convert"
    """Every other conversion (F2F, F2I, I2F, other F2FP, HADD2.F32 as a widening move)."""
    MMA = "mma"
    FLOAT = "float"
    F64 = "f64"
    INTEGER = "integer"
    COMPARE = "compare"
    """Sets a predicate or selects by one."""
    MEMORY = "memory"
    """Global, shared and constant loads and stores."""
    LOCAL = "local"
    """Local memory: spills and stack (LDL, STL)."""
    BRANCH = "branch"
    """Conditional and unconditional control flow within the code, calls; not EXIT, not the final self-branch."""
    CONTROL = "control"
    """EXIT, barriers, NOP, BSSY/BSYNC."""
    MOVE = "move"
    OTHER = "other"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: ``@!P0 FSEL R1, R2, RZ, P1``."""

    address: int
    predicate: str
    """``@!P0`` or empty."""
    opcode: str
    """With its modifiers: ``F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C``."""
    operands: str
    cls: InstructionClass

    @property
    def text(self) -> str:
        """The instruction as a disassembler prints it, without address and semicolon."""
        return " ".join(part for part in (self.predicate, self.opcode, self.operands) if part)


@dataclass(frozen=True)
class SassListing:
    """The machine code of one kernel, without the padding after its end. Every line of it was understood."""

    function: str
    arch: Arch
    instructions: tuple[Instruction, ...]
    labels: dict[int, str]
    """Address to label name, for branch targets."""
    registers: int
    code_sha256: str
    """Of the bytes of the code section: equal means not one byte differs."""

    def count(self, *classes: InstructionClass) -> int:
        """How many instructions are of these classes (of all, if none is named)."""
        return sum(not classes or i.cls in classes for i in self.instructions)


class DiffKind(StrEnum):
    """How one row of a side-by-side comparison differs."""

    SAME = "same"
    """The same opcode and the same operands up to register numbering."""
    CHANGED = "changed"
    """The same opcode, other operands."""
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class DiffRow:
    """One row: an instruction before, after, or both."""

    kind: DiffKind
    before: Instruction | None
    after: Instruction | None


@dataclass(frozen=True)
class SassDiff:
    """Two listings aligned, and what they differ in by instruction class."""

    rows: tuple[DiffRow, ...]
    delta: dict[InstructionClass, int]
    """Instructions after minus before, for each class that differs."""
    identical: bool
    """Not one byte of code differs."""


@dataclass(frozen=True)
class Check:
    """One condition of one rule on one probe and architecture."""

    rule: str
    """The condition in words: ``forbids F2FP.*E2M1``."""
    because: str
    verdict: Verdict
    detail: str
    """What was found: ``4 F2FP.SATFINITE.E2M1…``."""


@dataclass(frozen=True)
class ProbeResult:
    """What one probe came to on one architecture."""

    probe: str
    title: str
    arch: Arch
    kind: ProbeKind
    verdict: Verdict
    before: SassListing | None
    after: SassListing | None
    diff: SassDiff | None
    checks: tuple[Check, ...]
    error: str = ""
    """The compiler's words, where it refused."""
    cached: bool = False


@dataclass(frozen=True)
class ToolchainInfo:
    """The tools that ran, by version and path."""

    nvcc: str
    ptxas: str
    cicc: str
    nvdisasm: str
    host_compiler: str
    cuda_root: str
    disassembler: str


@dataclass(frozen=True)
class SetAside:
    """A probe that did not run because it has nothing to show here: neither a pass nor a failure."""

    probe: str
    title: str
    because: str
    """``csrc/**/nvfp4_utils.cuh of this release has no fp32_vec16_to_e2m1``."""


@dataclass(frozen=True)
class VerifyReport:
    """All that verify found; the JSON document and the HTML page are made of this."""

    variant: str
    target: str
    version: str
    tree: str
    patches: tuple[str, ...]
    """``cutlass/e2m1-guard 1``: those applied."""
    arch: tuple[Arch, ...]
    toolchain: ToolchainInfo
    results: tuple[ProbeResult, ...]
    problems: tuple[Problem, ...]
    """What failed beside the probes: a rule that matched nothing, a probe that no rule judges."""
    seconds: float
    fp4patch: str
    finished: str
    """UTC, ISO 8601."""
    set_aside: tuple[SetAside, ...] = ()
    numerics: tuple[NumericsReport, ...] = ()
    """Every input through the tree's conversions; empty unless asked for."""
    numerics_notes: tuple[str, ...] = ()
    """Where they ran and where not, in words."""
    executed: Executed | None = None
    """What the machine code came to when it was executed; None where it was not."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was checked, and all of it passed."""
        verdicts = [result.verdict for result in self.results] + [swept.verdict for swept in self.numerics]
        verdicts += self.executed.verdicts if self.executed else []
        if not self.results or self.problems or any(verdict.failed for verdict in verdicts):
            return Verdict.FAIL
        return Verdict.PASS


# --- numerics --------------------------------------------------------------------------------------------------------


class InputClass(StrEnum):
    """The kinds of float32 inputs that encoders are known to treat differently."""

    ZERO = "+0"
    NEGATIVE_ZERO = "-0"
    FINITE = "finite"
    """Without the zeros."""
    INFINITE = "infinity"
    NAN = "+NaN"
    """Quiet and signalling, any payload, sign clear."""
    NEGATIVE_NAN = "-NaN"


@dataclass(frozen=True)
class Mismatch:
    """One input that came out wrong: the bits of the float32, and two nibbles."""

    input: int
    expected: int
    got: int


@dataclass(frozen=True)
class NumericsRow:
    """What became of all inputs of one class."""

    cls: InputClass
    inputs: int
    mismatches: int
    magnitudes: int
    """Of the mismatches, those that differ in more than the sign."""
    first: tuple[Mismatch, ...] = ()
    """The lowest few inputs that mismatch."""

    def breaks(self, promise: Promise) -> bool:
        """Whether something mismatches that the promise does not allow."""
        sign_is_free = promise is Promise.EXACT_BUT_NAN_SIGN and self.cls in (InputClass.NAN, InputClass.NEGATIVE_NAN)
        return bool(self.magnitudes if sign_is_free else self.mismatches)


@dataclass(frozen=True)
class NumericsReport:
    """Every float32 input through one encoder, against the specification."""

    subject: str
    """``half_pair``, or ``NumericArrayConverter<float_e2m1_t, float, 8>``."""
    where: str
    """The compiler that built it for the host, or the GPU that ran it."""
    lanes: int
    """How many values one call encodes."""
    rows: tuple[NumericsRow, ...]
    promise: Promise
    seconds: float
    every_lane: bool = True
    """Every input went through every lane; else through one of them, neighbouring lanes taking distant inputs."""
    bits: int = 32
    """Of an input: 16 where half or bfloat16 is converted."""

    @property
    def inputs(self) -> int:
        """Inputs that were run: all there are, or all of them for each lane, or the sweep is not one."""
        return sum(row.inputs for row in self.rows)

    @property
    def verdict(self) -> Verdict:
        """PASS only if every input was run and the promise was kept."""
        broken = any(row.breaks(self.promise) for row in self.rows)
        every = (self.lanes if self.every_lane else 1) << self.bits
        return Verdict.FAIL if broken or self.inputs != every else Verdict.PASS


# --- throughput ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate:
    """Values a second: the median of the repeats, the slowest and the fastest."""

    median: float
    low: float
    high: float
    ratio: float
    """To ``predicate_sum``: the median of the quotients of each repeat."""


@dataclass(frozen=True)
class BenchRow:
    """One encoder on one GPU: what all 2^32 inputs came to, and how fast it is. One that is wrong is not measured."""

    name: str
    wrong: int
    """Of the numbers, infinities included."""
    wrong_nans: int
    """NaNs that do not become 6, of either sign."""
    nan_signs: int
    """NaNs that become -6, where the instruction gives +6."""
    registers: Rate | None
    memory: Rate | None

    @property
    def verdict(self) -> Verdict:
        """PASS if every number came out right; what becomes of NaN is a variant's promise, and is shown."""
        return Verdict.PASS if self.registers and self.memory and not self.wrong else Verdict.FAIL


@dataclass(frozen=True)
class BenchReport:
    """What one run of the bench program measured."""

    device: str
    arch: str
    multiprocessors: int
    fp4patch: str
    nvcc: str
    repeats: int
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...]
    """What was not measured, and why."""

    @property
    def verdict(self) -> Verdict:
        """PASS only if something was measured and every encoder is right."""
        if not self.rows or any(row.verdict.failed for row in self.rows):
            return Verdict.FAIL
        return Verdict.PASS
