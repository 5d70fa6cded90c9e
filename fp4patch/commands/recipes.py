"""The lines by which a package manager takes the patches that ``export`` writes."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple


class Exported(NamedTuple):
    """Patches of a release as files, by their names in the order in which they are applied."""

    target: str
    version: str
    files: Mapping[str, str]

    @property
    def names(self) -> Sequence[str]:
        """The names of the patches."""
        return [name for name in self.files if name != "series"]

    def sha256(self, name: str) -> str:
        """Return the hash of a patch."""
        return sha256(self.files[name].encode("utf-8", "surrogateescape")).hexdigest()


def _each(line: str, exported: Exported, between: str = "\n") -> str:
    """Return a line for each patch, with ``NAME``, ``SHA256``, ``TARGET`` and ``VERSION`` replaced."""
    filled = line.replace("TARGET", exported.target).replace("VERSION", exported.version)
    return between.join(filled.replace("NAME", n).replace("SHA256", exported.sha256(n)) for n in exported.names)


def _cmake(exported: Exported) -> str:
    command = "patch --forward -p1 -i ${CMAKE_CURRENT_SOURCE_DIR}/patches/NAME"
    return f"  PATCH_COMMAND {_each(command, exported, between=f'{chr(10)}        COMMAND ')}\n"


def _conda(exported: Exported) -> str:
    return f"  patches:\n{_each('    - patches/NAME', exported)}\n"


def _debian(exported: Exported) -> str:
    return f"# debian/patches/series\n{_each('NAME', exported)}\n"


def _dockerfile(exported: Exported) -> str:
    names = f"patches/{exported.target}-{exported.version}-*.patch"
    loop = 'for file in /tmp/patches/*.patch; do patch --forward -p1 -i "$file"; done'
    return f"COPY {names} /tmp/patches/\nRUN set -e; {loop}\n"


def _easybuild(exported: Exported) -> str:
    patches = _each("    'NAME',", exported)
    return f"patches = [\n{patches}\n]\n# behind those of the sources, in checksums:\n{_each(_CHECKSUM, exported)}\n"


_CHECKSUM = "    {'NAME': 'SHA256'},"


def _nix(exported: Exported) -> str:
    return f"  patches = [\n{_each('    ./patches/NAME', exported)}\n  ];\n"


def _pkgbuild(exported: Exported) -> str:
    sources = f"source+=(\n{_each('  NAME', exported)}\n)\nsha256sums+=(\n{_each('  SHA256', exported)}\n)\n"
    loop = '  for file in "$srcdir"/TARGET-VERSION-*.patch; do\n    patch --forward -p1 -i "$file"\n  done\n'
    loop = loop.replace("TARGET", exported.target).replace("VERSION", exported.version)
    return f"{sources}\n# in prepare(), in the directory of the source\n{loop}"


def _spack(exported: Exported) -> str:
    return _each('    patch("NAME", when="@VERSION")', exported) + "\n"


LINES: Mapping[str, Callable[[Exported], str]] = {
    "cmake": _cmake,
    "conda": _conda,
    "debian": _debian,
    "dockerfile": _dockerfile,
    "easybuild": _easybuild,
    "nix": _nix,
    "pkgbuild": _pkgbuild,
    "spack": _spack,
}
"""By the names of ``export --for``."""
