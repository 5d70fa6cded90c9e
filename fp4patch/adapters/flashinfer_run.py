"""The Python process in which FlashInfer's own functions run: ``python -I -B flashinfer_run.py RESULT PACKAGES``.

It reads a question as JSON from standard input, imports the named files of a FlashInfer, calls the functions that
declare its modules, and writes the ``-gencode`` flags that each gives to ``gen_jit_spec``. Nothing is compiled.
PyTorch, and every package besides the standard library and packaging, is a stand-in: each value of it is unknown, and
the call ends where an unknown value would decide.

Sources that FlashInfer's functions generate outside of the scratch directory are not written. What else they would
change, the kernel refuses: this process is confined (core/sandbox.py).
"""

from __future__ import annotations

import ast
import builtins
import importlib
import io
import json
import logging
import os
import platform
import subprocess
import sys
import sysconfig
import traceback
from contextlib import suppress
from functools import cache, partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

if __name__ == "__main__":
    sys.path.append(sys.argv[2])  # the directory that has packaging: an isolated Python ignores PYTHONPATH

import packaging.requirements  # noqa: F401 - loaded before its directory leaves the path
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE = "flashinfer"
TORCH = "2.9.0"
"""Release that the stand-in for PyTorch states."""
_OWN = (RuntimeError, ValueError, AssertionError)
"""Exceptions that FlashInfer raises on purpose. Others mean that something is missing that a real machine has."""


class UnknownDecides(BaseException):
    """An unknown value decides. No handler in FlashInfer's code may catch this."""


class Called(BaseException):
    """``gen_jit_spec`` was called with these arguments, and these named ones. The rest of the function does not
    matter."""


def _decides(*_: object) -> NoReturn:
    raise UnknownDecides("an unknown value decides")


class UnknownValue:
    """A value of a package that is not there. It can be handed on, called and indexed, and cannot decide anything."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> UnknownValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return UnknownValue()

    def __call__(self, *_: object, **__: object) -> UnknownValue:
        """Return an unknown value."""
        return UnknownValue()

    def __getitem__(self, _: object) -> UnknownValue:
        return UnknownValue()

    def __or__(self, _: object) -> UnknownValue:
        return UnknownValue()

    __ror__ = __or__

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other or _decides()

    __bool__ = _decides
    __iter__ = _decides
    __len__ = _decides
    __contains__ = _decides
    __lt__ = _decides
    __le__ = _decides
    __gt__ = _decides
    __ge__ = _decides
    __int__ = _decides
    __index__ = _decides
    __float__ = _decides
    __str__ = _decides
    __format__ = _decides
    __fspath__ = _decides
    __enter__ = _decides
    __exit__ = _decides
    __add__ = _decides
    __radd__ = _decides
    __sub__ = _decides
    __rsub__ = _decides
    __mul__ = _decides
    __rmul__ = _decides
    __truediv__ = _decides
    __floordiv__ = _decides
    __mod__ = _decides


class StandIn(ModuleType):
    """A module of a package that is not there."""

    __path__ = []  # noqa: RUF012 - as the import system wants it

    __getattr__ = UnknownValue.__getattr__


class Finder(MetaPathFinder, Loader):
    """Imports FlashInfer's files from its root, and stand-ins for other packages.

    A package's ``__init__`` is not run, since FlashInfer's imports everything: a name is imported from the file that
    ``__init__`` imports it from, when it is used. The names of a file that a stand-in does not suffice for are unknown.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.modules: Mapping[str, Mapping[str, object]] = {}
        """Known values of stand-ins, by module."""
        self.failed = ""
        """The first import of one of FlashInfer's files that failed, with the place."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the specification of FlashInfer's modules and of stand-ins."""
        top, *below = name.split(".")
        if top in sys.stdlib_module_names or top == "packaging" or top.startswith(f"{PACKAGE}_"):
            return None  # flashinfer_cubin and flashinfer_jit_cache are optional, and not there
        if top != PACKAGE:
            return ModuleSpec(name, self, is_package=True)
        place = self._root.joinpath(*below)
        if place.is_dir():
            return ModuleSpec(name, self, origin=str(place / "__init__.py"), is_package=True)
        file = place.with_suffix(".py")
        return spec_from_file_location(name, file, loader=self) if file.is_file() else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return a stand-in for other packages."""
        return None if spec.name.partition(".")[0] == PACKAGE else StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run a file of FlashInfer's."""
        spec = module.__spec__
        assert spec
        if isinstance(module, StandIn):
            vars(module).update(self.modules.get(spec.name, {}))
            return
        assert spec.origin
        if spec.submodule_search_locations is not None:
            vars(module)["__getattr__"] = partial(_exported, spec.name, Path(spec.origin))
            return
        try:
            exec(_code(spec.origin), vars(module))  # noqa: S102 - that is what this process is for
        except _OWN:
            raise
        except (Exception, UnknownDecides) as error:
            self.failed = self.failed or self.place(error)
            vars(module)["__getattr__"] = lambda _: UnknownValue()
        if "gen_jit_spec" in vars(module):
            vars(module).update(gen_jit_spec=_gen_jit_spec, own_gen_jit_spec=vars(module)["gen_jit_spec"])

    def place(self, error: BaseException) -> str:
        """Return an error with the last line of FlashInfer's that it passed."""
        own = f"{self._root}/"
        lines = [line for line in traceback.extract_tb(error.__traceback__) if line.filename.startswith(own)]
        where = f"{lines[-1].filename.removeprefix(own)}:{lines[-1].lineno}: " if lines else ""
        if isinstance(error, UnknownDecides):
            return f"{where}`{lines[-1].line}`: {error}" if lines else str(error)
        return f"{where}{type(error).__name__}: {error}"


@cache
def _code(file: str) -> CodeType:
    return compile(Path(file).read_bytes(), file, "exec")


@cache
def _exports(init: Path) -> Mapping[str, tuple[str, str]]:
    """Return module and name of what a package's ``__init__`` imports from the package."""
    return {
        alias.asname or alias.name: ("." * node.level + (node.module or ""), alias.name)
        for node in ast.parse(init.read_bytes() if init.is_file() else b"").body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }


def _exported(package: str, init: Path, name: str) -> object:
    if name not in _exports(init):
        raise AttributeError(f"{package} exports no {name}")
    source, original = _exports(init)[name]
    if not source.strip("."):
        return importlib.import_module(source + original, package)
    return getattr(importlib.import_module(source, package), original)


@cache
def _path(root: Path, name: str) -> str:
    """Return a path from FlashInfer's root, which may be made of links; of a generated file its end."""
    parts = name.split("/")[1:]
    tails = ("/".join(parts[at:]) for at in range(len(parts)))
    own = (tail for tail in tails if os.path.exists(f"{root}/{tail}"))  # noqa: PTH110 - a Path takes ten times as long
    return next(own, "/".join(parts[-2:]))


def _gen_jit_spec(*arguments: object, **named: object) -> NoReturn:
    raise Called(arguments, named)


def _machine(cuda: str, capability: Sequence[int]) -> Mapping[str, Mapping[str, object]]:
    """Return what stand-ins know of a machine with one GPU, and a PyTorch for this CUDA release."""
    devices, version = StandIn("torch.cuda"), StandIn("torch.version")
    vars(devices).update(
        device_count=lambda: 1, is_available=lambda: True, get_device_capability=lambda *_: tuple(capability)
    )
    vars(version).update(cuda=cuda)
    abi = SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
    includes = SimpleNamespace(find_include_path=lambda: "/tvm", find_dlpack_include_path=lambda: "/dlpack")
    return {
        "torch": {"cuda": devices, "version": version, "__version__": TORCH, "_C": abi},
        "tvm_ffi": {"libinfo": includes},
        "torch.cuda": vars(devices),
        "torch.version": vars(version),
        "torch.torch_version": {"TorchVersion": Version, "__version__": TORCH},
        # The text of generated sources does not matter.
        "jinja2": {"Template": lambda *_: SimpleNamespace(render=lambda **_: "")},
    }


def _set_processor(name: str) -> None:
    """Make Python state another processor than this machine's."""
    here = os.uname()
    os.uname = lambda: os.uname_result((*here[:4], name))
    platform.uname = lambda: platform.uname_result(here.sysname, *here[1:4], name)
    platform.machine = lambda: name


def _answer_for_nvcc(cuda: str, targets: Sequence[str]) -> None:
    """Answer as the nvcc of this CUDA release does; no other program is there."""
    said = {"--version": f"Cuda compilation tools, release {cuda}, V{cuda}.0", "--list-gpu-arch": "\n".join(targets)}

    def check_output(command: Sequence[str], *_: object, text: bool = False, **__: object) -> str | bytes:
        if Path(command[0]).name != "nvcc" or command[1] not in said:
            raise FileNotFoundError(2, "there is no such program", str(command[0]))
        return said[command[1]] if text else said[command[1]].encode()

    def run(command: Sequence[str], *_: object, text: bool = False, **__: object) -> SimpleNamespace:
        return SimpleNamespace(returncode=0, stdout=check_output(command, text=text), stderr="")

    subprocess.check_output = check_output  # type: ignore[assignment]
    subprocess.run = run  # type: ignore[assignment]


def _flags(root: Path, module: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the flags of one module. UnknownDecides is raised if the function does not determine them."""
    file = next((path for path in module["search"] if (root / path).is_file()), module["search"][-1])
    if not (root / file).is_file():
        raise UnknownDecides(f"there is no {file}")
    found = importlib.import_module(".".join((PACKAGE, *Path(file).with_suffix("").parts)))
    function = getattr(found, module["function"], None)
    if function is None:
        raise UnknownDecides(f"{file} defines no function {module['function']}")
    try:
        function(*module["arguments"])
    except Called as called:
        flags = called.args[1].get("extra_cuda_cflags")
        if isinstance(flags, list) and all(isinstance(flag, str) for flag in flags):
            return flags, _parts(root, called) if module["parts"] else {}
        raise UnknownDecides(f"{file}: the flags that {module['function']} gives are not known") from None
    raise UnknownDecides(f"{file}: {module['function']} does not call gen_jit_spec")


def _parts(root: Path, called: Called) -> dict[str, list[str]]:
    """Return the sources and the flags of a module by kind, as FlashInfer itself writes them for ninja.

    Empty if the stand-ins do not suffice for that.
    """
    written: list[str] = []
    core = vars(sys.modules[f"{PACKAGE}.jit.core"])
    core["write_if_different"] = lambda _, content: written.append(content)
    with suppress(Exception, UnknownDecides):
        core["own_gen_jit_spec"](*called.args[0], **called.args[1]).write_ninja()
    found: dict[str, set[str]] = {}
    for line in "".join(written).replace("$\n", "").splitlines():
        name, _, values = line.partition(" = ")
        if line.startswith("build ") and "compile " in line:
            found.setdefault("source", set()).add(_path(root, line.rpartition(" ")[2]))
        elif values and name != "name":
            for value in values.split():
                flag = value[: value.find("/")] if value.startswith(("/", "-I/", "-L/")) else value
                if not value.startswith("-gencode"):
                    own = flag + _path(root, value.removeprefix(flag)) if flag != value else value
                    found.setdefault(name.strip(), set()).add(own)
    return {kind: sorted(values) for kind, values in found.items()}


def _traced(root: Path, files: Sequence[str]) -> dict[str, set[int]]:
    """Note from now on which lines of these files of FlashInfer are executed, by path."""
    ran: dict[str, set[int]] = {}
    own = {f"{root}/{file}": file for file in files}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        file = own.get(frame.f_code.co_filename)
        if file is None:
            return None
        if event == "line":
            ran.setdefault(file, set()).add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    return ran


def _answer(finder: Finder, root: Path, modules: Sequence[Mapping[str, Any]]) -> Mapping[str, object]:
    """Return the flags of each module, the exception by which the build stops, or the reason why neither is known."""
    flags, parts = {}, {}
    finder.failed = ""
    for module in modules:
        try:
            flags[module["name"]], parts[module["name"]] = _flags(root, module)
        except UnknownDecides as error:
            return {"unknown": finder.failed or finder.place(error)}
        except _OWN as error:
            return {"stops": f"{type(error).__name__}: {error}"}
        except Exception as error:  # the modelled machine may not have everything that FlashInfer needs
            return {"unknown": finder.place(error)}
    return {"flags": flags, "parts": parts}


def _write_nothing_elsewhere(scratch: Path) -> None:
    """Let sources that FlashInfer's functions generate outside of ``scratch`` go nowhere."""

    def inside(path: object) -> bool:
        return path == os.devnull or (isinstance(path, str | Path) and Path(path).absolute().is_relative_to(scratch))

    opens, makes = io.open, os.mkdir

    def open_(file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        if (set(mode) & set("wax+") and not inside(file)) or str(file).endswith(".jinja"):
            return opens(os.devnull, mode.replace("x", "w"), *args, **named)
        return opens(file, mode, *args, **named)

    def mkdir(path: Any, *args: Any, **named: Any) -> None:
        if inside(path):
            makes(path, *args, **named)

    builtins.open = io.open = open_
    os.mkdir = mkdir


def main(result: Path) -> None:
    """Answer the question on standard input."""
    question = json.load(sys.stdin)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    root = Path(question["root"])
    finder = Finder(root)
    sys.path[:] = [entry for entry in sys.path if not Path(entry, "packaging").is_dir()]  # no optional packages
    sysconfig.get_config_vars()  # reads a module, which would be a stand-in later
    sys.meta_path.insert(0, finder)
    logging.disable()
    _write_nothing_elsewhere(result.parent.absolute())
    answers = []
    ran = _traced(root, question["traced"]) if question["traced"] else {}
    for asked in question["machines"]:
        for name, module in tuple(sys.modules.items()):
            if name.startswith(PACKAGE) or type(module) is StandIn:
                del sys.modules[name]
        finder.modules = _machine(asked["cuda"], asked["capability"])
        _set_processor(asked["processor"])
        _answer_for_nvcc(asked["cuda"], asked["targets"])
        os.environ.pop(question["setting"], None)
        if asked["archs"]:
            os.environ[question["setting"]] = asked["archs"]
        ran.clear()
        answer = _answer(finder, root, asked["modules"])
        answers.append({**answer, "ran": {path: sorted(lines) for path, lines in ran.items()}})
    sys.settrace(None)
    result.write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
