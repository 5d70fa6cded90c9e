"""Hooks of the documentation site (mkdocs.yml): the explorer and the tables of the records as files of it, and links to
the rest of the project."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from fp4patch.catalog.manifest import load
from fp4patch.commands.explore_page import GPUS, REPOSITORY
from fp4patch.commands.explore_page import page as explorer
from tools.site_pages import PAGES

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")
EXPLORER = "explorer.html"
ASKED = "<!-- the site has the explorer's answers here -->"
"""Mark on the front page, for links to the explorer's answer for each GPU."""


def on_files(files: Files, config: Any) -> Files:
    """Add the explorer and the tables, made from the records."""
    files.append(File.generated(config, EXPLORER, content=explorer()))
    for name, made in PAGES.items():
        files.append(File.generated(config, name, content=made(load().root)))
    return files


def on_post_page(output: str, **_: Any) -> str:
    """Return the page with a name for the theme's search dialog, which has none."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text with links to directories, and to files outside docs/, as links to the repository.

    The front page gets the links to the explorer too.
    """
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def there(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        of_the_site = target.is_relative_to(ROOT / "docs") and not target.is_dir()
        if of_the_site or not target.exists():  # the strict build reports what does not exist
            return link[0]
        return f"]({REPOSITORY}{target.relative_to(ROOT).as_posix()}{link[2] or ''})"

    links = (f'<a class="md-button" href="{EXPLORER}#answer?gpu={gpu}">{name}</a>' for gpu, name in GPUS.items())
    return LINK.sub(there, markdown.replace(ASKED, "\n".join(["<div>", *links, "</div>"])))
