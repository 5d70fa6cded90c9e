"""Copies of the project's data, whole or with few of its probes, for tests that change them."""

import shutil
from collections.abc import Mapping, Set
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import tomlkit

from fp4patch.catalog.manifest import DATA, data_root
from fp4patch.catalog.reading import Reader


def copy_data(to: Path) -> Path:
    """Write the data to ``to``."""
    for folder in DATA:
        shutil.copytree(data_root() / folder, to / folder)
    return to


def few_probes(to: Path, kept: Mapping[str, str], *, sampled: bool = False, builds: bool = False) -> Path:
    """Write patches and variants to ``to``, with the probes ``kept`` (name to target), and the rules on them.

    Families are written out. With ``sampled`` the execution takes a sample of floats. Only with ``builds`` the tree's
    own build is evaluated: half a minute for vLLM, whatever the probes are.
    """
    reader, written = Reader(copy_data(to)), {}
    on_host = set[str]()
    for path in (*to.glob("patches/*/*/patch.toml"), *to.glob("variants/*.toml")):
        data = reader.table(path)
        assert data
        on_host |= {probe["name"] for probe in data.get("probes", []) if probe.get("kind") == "host"}
        data["rules"] = [rule for rule in data.get("rules", []) if _is_for(rule, kept, on_host)]
        if path.name == "patch.toml":
            data["probes"] = [probe for probe in data.get("probes", []) if probe["name"] in kept]
            if not builds:
                data.pop("builds", None)
            for probe in data["probes"]:
                if sampled and probe.get("executes", {}).get("input") == "float32":
                    probe["executes"]["sampled"] = True
        written[path] = tomlkit.dumps(data)
    shutil.rmtree(to / "variants" / "parts")
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    return to


def _is_for(rule: Mapping[str, Any], kept: Mapping[str, str], on_host: Set[str]) -> bool:
    """Tell whether a rule is about a probe that is kept; one about machine code is not about a probe on the host."""
    of_gpus = all(arch.startswith("sm_") for arch in rule.get("arch", ["*"]))
    names = [f"{target}/{probe}" for probe, target in kept.items() if not (of_gpus and probe in on_host)]
    return any(fnmatchcase(name, pattern) for name in names for pattern in rule["probes"])
