"""Helpers that tests of several parts share."""

import contextlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Answers, and prints nothing."""

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """Serve a directory on loopback under the given URL: with HTML pages in ``simple/``, a package index."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
