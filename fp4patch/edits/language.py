"""The language of a file, by its name."""

from functools import lru_cache

LANGUAGES = ("c++", "python", "cmake", "other")
"""``other`` is what is read as none of them: scripts, tables of settings."""

_PYTHON = frozenset({"py", "pyi", "pyx", "pxd"})
_OTHER = frozenset(["sh", "bash", "zsh", "toml", "cfg", "ini", "conf", "mk", "ps1", "dockerfile", "makefile"])


@lru_cache(maxsize=1 << 15)
def language(file: str) -> str:
    """Return the language of a file: ``c++`` also for templates of sources and whatever is not known."""
    name = file.rpartition("/")[2].lower()
    parts = name.removesuffix(".in").removesuffix(".j2").removesuffix(".jinja").removesuffix(".jinja2").split(".")
    if parts[-1] == "cmake" or name.startswith("cmakelists.txt"):
        return "cmake"
    if parts[-1] in _PYTHON:
        return "python"
    return "other" if parts[-1] in _OTHER or parts[0] in ("dockerfile", "makefile") else "c++"
