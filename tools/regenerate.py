"""Make a generated page, picture or record again.

python -m tools.regenerate --help           the names, with what each writes
python -m tools.regenerate NAME [ARGUMENTS]
"""

import ast
import importlib
import sys
from pathlib import Path

PAGES = Path(__file__).parent / "pages"


def names() -> dict[str, str]:
    """Return each name with the first sentence of its module."""
    modules = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in PAGES.glob("*.py")}
    return {
        name.replace("_", "-"): (text or "").partition("\n")[0]
        for name, text in sorted(modules.items())
        if not name.startswith("_")
    }


def main(arguments: list[str]) -> None:
    """Run the module of that name with the other arguments; without a name, or for ``--help``, print all names."""
    known = names()
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.writelines(f"{name:16}{text}\n" for name, text in known.items())
        return
    name, *rest = arguments
    if name not in known:
        sys.exit(f"there is no page {name!r}; known are {', '.join(known)}")
    importlib.import_module(f"tools.pages.{name.replace('-', '_')}").main(rest)


if __name__ == "__main__":
    main(sys.argv[1:])
