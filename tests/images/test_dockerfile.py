"""The Dockerfile as its readers see it: the linters, the builder's own outline, and the shell in its here-documents."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from fp4patch.catalog.manifest import data_root

DOCKERFILE = data_root() / "dockerfiles" / "Dockerfile"
TEXT = DOCKERFILE.read_text()


def call(environ: dict[str, str], base: str, tmp_path: Path, what: str) -> Any:
    """Return the builder's answer about the Dockerfile, with the tiny base in place of NVIDIA's."""
    bases = [f"--build-arg={name}={base}" for name in ("BASE_IMAGE", "RUNTIME_IMAGE")]
    options = [f"--call={what},format=json", "--target=runtime", *bases, "-f", str(DOCKERFILE)]
    command = ["docker", "buildx", "build", *options, str(tmp_path)]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


def test_the_builders_own_check_has_nothing_to_say(engine: dict[str, str], tiny_base: str, tmp_path: Path) -> None:
    found = call(engine, tiny_base, tmp_path, "check")
    assert not found.get("warnings")
    assert not found.get("buildError")


def test_no_stage_can_be_reached_around_the_proof() -> None:
    """Later stages copy sources only from the stage that has proven them."""
    after = TEXT[TEXT.index(" AS kernels") :]
    assert "from=sources" not in after
    assert "COPY --from=proof /src /src" in after


def test_compilers_of_the_builder_are_not_in_the_runtime_image() -> None:
    assert "COPY --from=compilers / /opt/native" in TEXT
    assert "native" not in TEXT[TEXT.index(" AS runtime") :]


def test_no_step_depends_on_more_of_the_context_than_it_reads() -> None:
    mounts = re.findall(r"--mount=type=bind,(\S+)", TEXT)
    assert mounts
    assert all(re.search(r"\b(?:from|source)=", mount) for mount in mounts)


def test_all_secrets_are_optional_and_every_argument_but_those_of_the_machine_has_a_default(
    engine: dict[str, str], tiny_base: str, tmp_path: Path
) -> None:
    outline = call(engine, tiny_base, tmp_path, "outline")
    secrets = {secret["name"]: secret.get("required", False) for secret in outline["secrets"]}
    assert secrets == {"ca": False, "pip": False, "sccache_env": False}
    empty = {argument["name"] for argument in outline["args"] if not argument.get("value")}
    assert empty == {"MAX_JOBS", "NVCC_THREADS", "CMAKE_ARGS", "TORCH_VERSION"}


def test_every_script_is_strict_bash_and_none_edits_a_source() -> None:
    scripts = re.findall(r"^RUN (?:[^\n]*\\\n)*[^\n]*<<'EOF'\n(.*?)^EOF$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(scripts) == len(re.findall(r"^RUN ", TEXT, re.MULTILINE))
    for script in scripts:
        assert script.startswith("#!/bin/bash\nset -euo pipefail\n")
        assert not re.search(r"\b(?:sed|patch|perl)\b(?!/)", script.replace("fp4patch", ""))
    assert not re.match(r"#\s*syntax\s*=", TEXT)


# --- how many compilations at a time ---------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The file that the kernels and wheel stages source, as the Dockerfile writes it."""
    path = tmp_path / "settings"
    (text,) = re.findall(r"^COPY <<'EOF' /opt/fp4patch/settings\n(.*?)^EOF$", TEXT, re.MULTILINE | re.DOTALL)
    path.write_text(text)
    return path


def sourced(settings: Path, name: str, **environ: str) -> str:
    """Return the value of a variable after the settings."""
    needed = {"PATH": os.environ["PATH"], "TORCH_CUDA_ARCH_LIST": "12.1a", "COMPILER_CACHE": "ccache"}
    script = f'set -euo pipefail; . "$0" >/dev/null; echo "${{{name}:-}}"'
    environ = needed | {"VLLM_VERSION": "0.33.0"} | environ
    return subprocess.run(
        ["bash", "-c", script, settings], env=environ, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_jobs_follow_the_cores_and_the_memory_of_the_machine_unless_they_are_given(settings: Path) -> None:
    available = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert available
    # A process of this machine may have taken or given back memory since.
    most = max(1, min(len(os.sched_getaffinity(0)), int(available[1]) // (4 << 20) + 1))
    assert 1 <= int(sourced(settings, "MAX_JOBS")) <= most
    assert sourced(settings, "MAX_JOBS", MAX_JOBS="37") == "37"


@pytest.mark.parametrize(("compiler_cache", "disabled"), [("ccache", ""), ("sccache", "1"), ("none", "1")])
def test_ccache_works_only_where_it_is_chosen(settings: Path, compiler_cache: str, disabled: str) -> None:
    assert sourced(settings, "CCACHE_DISABLE", COMPILER_CACHE=compiler_cache) == disabled


# --- the version of a tree of one's own ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "tree", "pretended"),
    [
        ("0.33.0", "nothing", "0.33.0"),
        ("", "nothing", "0.0.0+unknown"),  # a git context of BuildKit, where setuptools-scm ends with an error
        ("", "PKG-INFO", ""),
        ("", "git", ""),
    ],
)
def test_setuptools_scm_is_given_a_version_only_where_it_finds_none(
    settings: Path, tmp_path: Path, release: str, tree: str, pretended: str
) -> None:
    vllm = tmp_path / "vllm"
    vllm.mkdir()
    if tree == "PKG-INFO":
        (vllm / tree).touch()
    elif tree == "git":
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", "-C", vllm, *words], check=True)
    settings.write_text(settings.read_text().replace("/src/vllm", str(vllm)))
    given = {"VLLM_VERSION": release, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    assert sourced(settings, "SETUPTOOLS_SCM_PRETEND_VERSION", **given) == pretended


@pytest.mark.parametrize(
    ("release", "stated", "labelled"),
    [
        ("0.33.0", "", "0.33.0+fp4patch.next3"),
        ("", "0.33.1.dev1+gabc", "0.33.1.dev1+gabc.fp4patch.next3"),
        ("", "0.33.0", "0.33.0+fp4patch.next3"),
    ],
)
def test_the_version_of_patched_sources_has_a_label(
    settings: Path, tmp_path: Path, release: str, stated: str, labelled: str
) -> None:
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts/cutlass.json").write_text('{"diffs": []}')
    (tmp_path / "PKG-INFO").touch()
    (tmp_path / "setuptools_scm.py").write_text(f"print({stated!r})\n")
    text = settings.read_text().replace("/src/vllm", str(tmp_path))
    settings.write_text(text.replace("/opt/fp4patch/proof/receipts", str(tmp_path / "receipts")))
    given = {"VLLM_VERSION": release, "VARIANT": "next3"}
    assert sourced(settings, "SETUPTOOLS_SCM_PRETEND_VERSION", **given) == labelled


# --- the scripts that depend on the base image -----------------------------------------------------------------------


def script_with(text: str) -> str:
    """Return the Dockerfile's script that contains the text."""
    scripts = re.findall(r"<<'EOF'\n(#!/bin/bash.*?)^EOF$", TEXT, re.MULTILINE | re.DOTALL)
    (found,) = [script for script in scripts if text in script]
    return str(found)


@pytest.mark.parametrize(
    ("found", "needed", "builds"), [("12", "13", False), ("13", "13", True), ("12.2.0", "0", True)]
)
def test_a_base_image_with_an_older_gcc_ends_the_build_at_once(
    tmp_path: Path, found: str, needed: str, builds: bool
) -> None:
    gcc = tmp_path / "gcc"
    gcc.write_text(f"#!/bin/sh\necho {found}\n")
    gcc.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GCC_VERSION": needed}
    script = ["bash", "-c", script_with("gcc -dumpversion")]
    run = subprocess.run(script, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == (0 if builds else 1)
    assert run.stderr == (
        ""
        if builds
        else "this vLLM needs GCC 13, and the base image has 12: choose another one (--build-arg BASE_IMAGE=IMAGE)\n"
    )


def test_a_toolkit_out_of_wheels_gets_the_libraries_that_it_lacks_and_keeps_its_own(tmp_path: Path) -> None:
    """The commands are those of coreutils 8 too: `cp --update=none` came with 9.3."""
    torch, toolkit = tmp_path / "packages" / "nvidia" / "cu13", tmp_path / "cu13"
    for path in (torch / "lib" / "libcublas.so.13", torch / "include" / "both.h", torch / "include" / "a" / "new.h"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("torch")
    (toolkit / "include").mkdir(parents=True)
    (toolkit / "include" / "both.h").write_text("own")
    script = script_with("nvidia/cu${cuda##*/cu}")
    start = script.index("  from=$packages")
    lines = script[start : script.index("  /scripts/complete-toolkit", start)]
    environ = {"PATH": os.environ["PATH"], "packages": str(tmp_path / "packages"), "cuda": str(toolkit)}
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], env=environ, check=True)
    texts = {path.relative_to(toolkit).as_posix(): path.read_text() for path in toolkit.rglob("*") if path.is_file()}
    assert texts == {"lib/libcublas.so.13": "torch", "include/both.h": "own", "include/a/new.h": "torch"}
    assert (toolkit / "lib" / "libcublas.so.13").is_symlink()


def test_pip_reads_one_certificate_wherever_it_may_be_emulated(tmp_path: Path) -> None:
    """All of them take longer to read there than a server waits; pip looks a single one up by the hash of its name."""
    scripts = re.findall(r"<<'EOF'\n(#!/bin/bash.*?)^EOF$", TEXT, re.MULTILINE | re.DOTALL)
    emulated = [script for script in scripts if re.search(r"\bpip\b.* install ", script) and "/tmp/venv" not in script]
    assert len(emulated) == 3
    assert all(script.index("PIP_CERT=$(/scripts/certificates)") < script.index(" -m pip ") for script in emulated)

    bundle = tmp_path / "all.crt"
    for name in ("one", "two", "other"):
        request = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", f"/CN={name}"]
        subprocess.run([*request, "-keyout", os.devnull, "-out", f"{name}.pem"], cwd=tmp_path, check=True)
    bundle.write_text("# one\n" + "\n# two\n".join((tmp_path / f"{name}.pem").read_text() for name in ("one", "two")))
    script = TEXT.partition("<<'EOF' /certificates\n")[2].partition("\nEOF\n")[0]
    script = script.replace("/dev/shm", str(tmp_path)).replace("/etc/ssl/certs/ca-certificates.crt", str(bundle))
    run = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    verify = ["openssl", "verify", "-CApath", run.stdout.strip()]
    for name, status in {"one": 0, "two": 0, "other": 2}.items():
        verified = subprocess.run([*verify, f"{name}.pem"], cwd=tmp_path, capture_output=True, check=False)
        assert verified.returncode == status, name


def test_the_version_of_the_wheel_names_the_variant_and_each_stack(tmp_path: Path) -> None:
    script = TEXT[TEXT.index("  label=fp4patch.$VARIANT") :].partition("\nfi\n")[0]
    script = script.replace("/opt/fp4patch/proof/receipts", str(tmp_path)).replace("$(python ", f"$({sys.executable} ")
    for name, stacks in (("vllm", ["My_stack-2", "", "My_stack-2"]), ("cutlass", ["a"])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"diffs": [{"stack": stack} for stack in stacks]}))
    for version, expected in (
        ("0.33.0", "0.33.0+fp4patch.next3.a.my.stack.2"),
        ("0.33.0+cu130", "0.33.0+cu130.fp4patch.next3.a.my.stack.2"),
    ):
        environ = {**os.environ, "VARIANT": "next3", "VLLM_VERSION": version}
        command = ["bash", "-euc", f"{script}\necho $VLLM_VERSION"]
        said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.strip()
        assert said == expected
        assert str(Version(said)) == expected
