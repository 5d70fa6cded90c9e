"""A small machine on disk: programs that answer as the real ones do, and packages with the files that are read."""

import os
import stat
import subprocess
from pathlib import Path

from fp4patch.doctor.host import Host

LIBCUDA = """
#include <string.h>
int cuDriverGetVersion(int *version) { *version = DRIVER; return 0; }
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetName(char *name, int room, int device) { strncpy(name, NAME, room); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? MAJOR : MINOR; return 0; }
"""


def program(path: Path, script: str) -> Path:
    """Write a shell script in place of a program, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def tool(path: Path, version: str) -> Path:
    """Write a program of the CUDA toolkit that prints its version, and return its path."""
    release = ".".join(version.split(".")[:2])
    return program(path, f"echo 'Cuda compilation tools, release {release}, V{version}'")


def toolkit(root: Path, version: str, *, cicc: str = "", newest_gcc: int = 99) -> Path:
    """Write a toolkit's directory; ``cicc`` of another version makes a mixed one."""
    for name in ("bin/nvcc", "bin/ptxas", "bin/nvdisasm"):
        tool(root / name, version)
    with (root / "bin/nvcc").open("a") as nvcc:
        nvcc.write(f"echo '#$ TOP={root}/bin/..'\n")
    tool(root / "nvvm/bin/cicc", cicc or version)
    header = root / "include/crt/host_config.h"
    header.parent.mkdir(parents=True)
    header.write_text(f"#if __GNUC__ > {newest_gcc}\n#error unsupported GNU version\n#endif\n")
    return root


def distribution(site: Path, name: str, version: str) -> None:
    """An installed distribution's metadata."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def torch(site: Path, version: str, cuda: str | None, archs: str) -> None:
    """A PyTorch package that answers the one question that needs an import."""
    distribution(site, "torch", version)
    package = site / "torch"
    package.mkdir()
    (package / "version.py").write_text(f"cuda = {cuda!r}\n")
    (package / "__init__.py").write_text(
        f"import warnings\nfrom . import version\nwarnings.warn('as noisy as the real one')\nprint('so is this')\n"
        f"class _C:\n    @staticmethod\n    def _cuda_getArchFlags():\n        return '{archs}'\n"
    )


def triton(site: Path, **assemblers: str) -> None:
    """Triton with its bundled assemblers: ``ptxas="12.8.93"``, ``ptxas_blackwell="12.9.86"``."""
    distribution(site, "triton", "3.5.0")
    for name, version in assemblers.items():
        tool(site / "triton/backends/nvidia/bin" / name.replace("_", "-"), version)


def libcuda(
    tmp_path: Path, *, driver: int = 13000, init: int = 0, name: str = "NVIDIA GB10", gpu: tuple[int, int] = (12, 1)
) -> None:
    """Write the driver's library, on a machine with one GPU."""
    (tmp_path / "libcuda.c").write_text(LIBCUDA)
    values = {"DRIVER": driver, "INIT": init, "NAME": f'"{name}"', "MAJOR": gpu[0], "MINOR": gpu[1]}
    files = ("libcuda.c", "-o", "libcuda.so.1")
    subprocess.run(
        ["g++", "-xc", "-shared", "-fPIC", *(f"-D{key}={value}" for key, value in values.items()), *files],
        cwd=tmp_path,
        check=True,
    )


def machine(tmp: Path, **environ: str) -> Host:
    """Return a machine that has g++ and the usual tools, and below ``tmp`` what a test put there."""
    tools = tmp / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("g++", "sh", "cat", "echo", "sed", "dirname"):
        link = tools / name
        real = next((Path(d) / name for d in [*os.defpath.split(":"), "/usr/bin"] if (Path(d) / name).exists()), None)
        if real and not link.exists():
            link.symlink_to(real)
    (tmp / "site").mkdir(exist_ok=True)
    environ = {"PATH": str(tools), "HOME": str(tmp / "home")} | environ
    return Host(environ, (tmp / "site",), tmp / "root", libcuda=str(tmp / "libcuda.so.1"))
