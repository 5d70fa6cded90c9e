"""Record what a change of the package's structure must not change, and compare two records.

    python -m tools.goldens apply FILE      SHA-256 of every file that apply writes: each release × each variant
    python -m tools.goldens verify FILE     verdicts, counts and mismatches of verify on nine trees (half an hour, cold)
    python -m tools.goldens doctor FILE     doctor's answers about source trees and wheels
    python -m tools.goldens compare A B     the differences between two records; exit status 1 if there are any

Trees and wheels come from the package index and stay in the directory GOLDENS (by default in the user's cache).
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from fp4patch import cli
from fp4patch.catalog.manifest import load
from fp4patch.core import progress
from fp4patch.sources.fetch import fetch

STORE = Path(os.environ.get("GOLDENS", Path.home() / ".cache" / "fp4patch-goldens"))
MARKS = (b"fp4patch:", b"fp4patch ")
VERIFIED = (
    ("cutlass", "4.2.1"),
    ("cutlass", "4.8.0"),
    ("vllm", "0.13.0"),
    ("vllm", "0.22.1"),
    ("vllm", "0.33.0"),
    ("flashinfer", "0.5.0"),
    ("transformer_engine", "2.8.0"),
    ("transformer_engine", "2.18.0"),
)
EXAMINED = (
    *(("vllm", version) for version in ("0.10.2", "0.11.0", "0.13.0", "0.18.1", "0.22.1", "0.26.0", "0.33.0")),
    *(("flashinfer", version) for version in ("0.5.0", "0.6.0", "0.6.7", "0.7.2")),
    *(("cutlass", version) for version in ("4.0.0", "4.2.1", "4.4.2", "4.8.0")),
    *(("transformer_engine", version) for version in ("2.8.0", "2.12.0", "2.18.0")),
    ("vllm", "0.12.0"),
    ("vllm", "0.25.1"),
)
WHEELS = (
    "comfy-kitchen",
    "flashinfer-python==0.6.0",
    "mlx-cuda-12",
    "nvidia-cutlass==4.2.0.0",
    "sageattention",
    "xformers",
    "bitsandbytes",
    "ctranslate2",
    "spconv-cu120",
    "tilelang",
)


def run(*arguments: str | Path) -> tuple[int, str]:
    """Return exit status and standard output of a command, run in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = cli.run([str(argument) for argument in arguments])
    return status, out.getvalue()


def tree_of(target: str, version: str) -> Path:
    """Return the pristine tree of a release, fetched once."""
    tree = STORE / f"{target}-{version}"
    if not tree.exists():
        STORE.mkdir(parents=True, exist_ok=True)
        fetch(load().target(target), version, tree, progress=progress.silent)
    return tree


@contextlib.contextmanager
def copied(target: str, version: str) -> Iterator[Path]:
    """Yield a copy of a release, for one use."""
    pristine = tree_of(target, version)
    with tempfile.TemporaryDirectory(dir=STORE) as work:
        copy = Path(work) / "tree"
        shutil.copytree(pristine, copy, symlinks=True)
        yield copy


def digest_without_stamp(path: Path) -> str:
    """Return the hash of a file without its last line where that is fp4patch's stamp."""
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and any(mark in lines[-1] for mark in MARKS):
        lines.pop()
    return hashlib.sha256(b"".join(lines)).hexdigest()


def applied_in(tree: Path) -> dict[str, str]:
    """Return the hash of each file that receipts in a tree name."""
    found = {}
    for receipt in sorted(tree.rglob(".fp4patch/receipt.json")):
        root = receipt.parents[1]
        for path in sorted(json.loads(receipt.read_text())["files"]):
            file = root / path
            found[str(file.relative_to(tree))] = digest_without_stamp(file) if file.exists() else "removed"
    return found


def content(tree: Path) -> str:
    """Return a hash of all of a tree."""
    total = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            total.update(str(path.relative_to(tree)).encode() + path.read_bytes())
    return total.hexdigest()


def applied(release: tuple[str, str]) -> dict[str, Any]:
    """Return what apply makes of one release, for each variant."""
    target, version = release
    results: dict[str, Any] = {}
    with copied(target, version) as tree:
        pristine = content(tree)
        for variant, about in load().variants.items():
            if target not in about.targets:
                continue
            status, _ = run("apply", "--variant", variant, "--json", tree)
            results[variant] = {"status": status, "files": applied_in(tree)}
            run("revert", tree)
            if content(tree) != pristine:
                results[variant]["reverted"] = False
                return {f"{target} {version}": results}
    return {f"{target} {version}": results}


def verified(release: tuple[str, str], variant: str) -> dict[str, Any]:
    """Return the verdicts of verify on one release: of the whole, of each probe and target, of each execution."""
    with copied(*release) as tree:
        run("apply", "--variant", variant, tree)
        document = tree.parent / "verify.json"
        status, _ = run("verify", "--variant", variant, "--execute", "--json", document, tree)
        if not document.exists():
            return {" ".join((*release, variant)): {"status": status}}
        report = json.loads(document.read_text())
    reports = report.get("trees", [report])  # a release can hold several trees
    rows = {
        f"{row['probe']} {row['arch']}": {
            "verdict": row["verdict"],
            "counts": {side: _counts(row.get(side)) for side in ("before", "after")},
        }
        for one in reports
        for row in one["results"]
    }
    executions = {
        f"{row['probe']} {row['arch']} {row['side']}": [row["verdict"], row["ran"]]
        for one in reports
        for row in (one.get("executed") or {}).get("executions", ())
    }
    return {
        " ".join((*release, variant)): {
            "status": status,
            "verdict": report["verdict"],
            "rows": rows,
            "executions": executions,
        }
    }


def _counts(listing: Any) -> Any:
    """Return the counts of instructions of one side, and the digest of its code."""
    names = ("instructions", "branches", "fp4", "local", "f64", "code_sha256")
    return {name: listing[name] for name in names} if isinstance(listing, dict) else None


def examined(path: Path) -> Any:
    """Return doctor's answers about a tree or a file."""
    status, out = run("doctor", "--json", path)
    document = json.loads(out) if out else {}
    return {"status": status, "document": json.loads(json.dumps(document).replace(str(path), "PATH"))}


def wheel_of(requirement: str) -> Path | None:
    """Return the wheel of a project, downloaded once; None where the index has none for this machine."""
    folder = STORE / "wheels" / requirement
    if not folder.exists():
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", str(folder), requirement], check=False)
    return next(iter(folder.glob("*.whl")), None)


def record_apply() -> dict[str, Any]:
    """Return what apply writes into every release that an archive has."""
    releases = [(name, archive.version) for name, target in load().targets.items() for archive in target.archives]
    with ProcessPoolExecutor(2) as pool:
        return {key: value for one in pool.map(applied, releases) for key, value in one.items()}


def record_verify() -> dict[str, Any]:
    """Return what verify finds on each of VERIFIED."""
    found: dict[str, Any] = {}
    for release in VERIFIED:
        found |= verified(release, "next3")
        print(release, file=sys.stderr, flush=True)  # noqa: T201 - a script
    return found | verified(("vllm", "0.33.0"), "native")


def record_doctor() -> dict[str, Any]:
    """Return what doctor answers about each of EXAMINED and of WHEELS."""
    found = {}
    for target, version in EXAMINED:
        with copied(target, version) as tree:
            found[f"{target} {version}"] = examined(tree)
    for requirement in WHEELS:
        path = wheel_of(requirement)
        found[requirement] = examined(path) if path else None
    return found


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Yield each place where two records differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{place}/{key}")
    elif one != other:
        yield f"{place}: {json.dumps(one)[:200]} -> {json.dumps(other)[:200]}"


RECORDS: dict[str, Callable[[], dict[str, Any]]] = {
    "apply": record_apply,
    "verify": record_verify,
    "doctor": record_doctor,
}


def main() -> None:
    """Write a record, or compare two."""
    match sys.argv[1:]:
        case ["compare", one, other]:
            found = list(differences(*(json.loads(Path(path).read_text()) for path in (one, other))))
            sys.stdout.writelines(f"{line}\n" for line in found)
            sys.exit(bool(found))
        case [name, file] if name in RECORDS:
            Path(file).write_text(json.dumps(RECORDS[name](), indent=1, sort_keys=True) + "\n")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
