"""The lines that `export --for` prints, in the program that reads them: each unpacks CUTLASS and patches it.

A program that is not installed is skipped with its name; `FP4PATCH_REQUIRE_PACKAGE_MANAGERS=1` makes that a failure.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command import Said
from small_cutlass import CONVERTER, FILES, checkout, git, small_cutlass

GetTree = Callable[[str, str], Path]
Lines = Callable[[str, str], str]
NAME = "cutlass-4.2.1"


def required(name: str, *, is_there: bool) -> None:
    if not is_there:
        if os.environ.get("FP4PATCH_REQUIRE_PACKAGE_MANAGERS") == "1":
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")


def program(name: str) -> str:
    found = shutil.which(name)
    required(name, is_there=found is not None)
    return str(found)


def python_of(module: str) -> str:
    """Return a Python that has a module: this one, or that of FP4PATCH_PACKAGE_MANAGERS_PYTHON."""
    python = os.environ.get("FP4PATCH_PACKAGE_MANAGERS_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False, timeout=60)
    required(module, is_there=done.returncode == 0)
    return python


def run(folder: Path, *command: str | Path, **environ: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"HOME": str(folder)} | environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def source(pristine_tree: GetTree, tmp_path: Path) -> Path:
    """An archive of CUTLASS 4.2.1, with a directory around its files."""
    small_cutlass(pristine_tree("cutlass", "4.2.1"), tmp_path / NAME)
    with tarfile.open(tmp_path / f"{NAME}.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / NAME, NAME)
    return tmp_path / f"{NAME}.tar.gz"


@pytest.fixture
def lines(source: Path, fp4patch: Callable[..., Said]) -> Lines:
    """``lines("nix", "patches")``: what is printed for a package manager; the patches are in that directory."""

    def get(manager: str, folder: str) -> str:
        said = fp4patch(
            "export", "--variant", "next3", "--for", manager, "-o", source.parent / folder, source.parent / NAME
        )
        assert said.status == 0, said.err
        return said.out.partition("\n\n")[2]

    return get


@pytest.fixture
def is_patched(source: Path, fp4patch: Callable[..., Said]) -> Callable[[Mapping[str, bytes]], bool]:
    """Tell whether files are what apply makes of them, in upstream's names and without its line."""
    tree = Path(shutil.copytree(source.parent / NAME, source.parent / "applied"))
    assert fp4patch("apply", "--variant", "next3", tree).status == 0
    named = json.loads((tree / ".fp4patch/receipt.json").read_text())["files"]
    texts = {path: (tree / path).read_bytes() for path in FILES}
    whole = {
        path: b"".join(text.splitlines(keepends=True)[: -1 if path in named else None]) for path, text in texts.items()
    }
    names = ((b"fp4patch_", b"cutlass_"), (b"FP4PATCH_", b"CUTLASS_"))
    for ours, theirs in names:
        whole = {path: text.replace(ours, theirs) for path, text in whole.items()}
    return lambda files: dict(files) == whole


def of(tree: Path) -> dict[str, bytes]:
    return {path: (tree / path).read_bytes() for path in FILES}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


Patched = Callable[[Mapping[str, bytes]], bool]


def test_names_are_those_of_the_release_and_the_same_each_time(source: Path, lines: Lines) -> None:
    first, again = lines("spack", "one"), lines("spack", "two")
    names = sorted(path.name for path in (source.parent / "one").iterdir())
    assert first == again
    assert names[0] == f"{NAME}-0001-e2m1-encode.patch"
    assert all(name.startswith(f"{NAME}-0") for name in names)
    assert first == "".join(f'    patch("{name}", when="@4.2.1")\n' for name in names)


def test_lines_need_a_directory(source: Path, fp4patch: Callable[..., Said]) -> None:
    assert fp4patch("export", "--variant", "next3", "--for", "nix", source.parent / NAME).status == 2


def test_nix_builds_it_in_its_sandbox(source: Path, lines: Lines, is_patched: Patched) -> None:
    build = program("nix-build")
    with TemporaryDirectory(prefix="fp4patch-nix-", dir="/var/tmp") as place:  # a sandbox has a /dev of its own
        folder = Path(place)
        shutil.copyfile(source, folder / source.name)
        text = lines("nix", "patches")
        shutil.copytree(source.parent / "patches", folder / "patches")
        _nix_builds(build, folder, text, is_patched)
        subprocess.run(["chmod", "-R", "u+w", place], check=True)


def _nix_builds(build: str, folder: Path, text: str, is_patched: Patched) -> None:
    (folder / "builder.sh").write_text(
        "tar xzf $src && cd cutlass-4.2.1 || exit 1\n"
        "for file in $patches; do patch -s -p1 -i $file || exit 1; done\ncp -r . $out\n"
    )
    (folder / "default.nix").write_text(
        'derivation {\n  name = "cutlass"; system = builtins.currentSystem; PATH = "/usr/bin:/bin";\n'
        f'  builder = "/bin/sh"; args = [ ./builder.sh ]; src = ./{NAME}.tar.gz;\n{text}}}\n'
    )
    (folder / "nix").mkdir()
    (folder / "nix/nix.conf").write_text(
        "substituters =\nsandbox = true\nsandbox-fallback = false\nbuild-users-group =\n"
        "sandbox-paths = /bin /usr /lib /lib64\n"
    )
    places = {f"NIX_{name}_DIR": str(folder / f"nix/{name.lower()}") for name in ("STORE", "STATE", "LOG")}
    built = run(folder, build, "--no-out-link", "default.nix", NIX_CONF_DIR=str(folder / "nix"), **places)
    assert is_patched(of(Path(built.strip())))


def test_debians_programs_apply_and_take_back_the_series(source: Path, lines: Lines, is_patched: Patched) -> None:
    quilt, dpkg_source = program("quilt"), program("dpkg-source")
    tree = source.parent / "build" / NAME
    shutil.copytree(source.parent / NAME, tree)
    shutil.copyfile(source, tree.parent / "cutlass_4.2.1.orig.tar.gz")
    series = lines("debian", f"build/{NAME}/debian/patches")
    assert series.partition("\n")[2].split() == [
        line.split()[0] for line in (tree / "debian/patches/series").read_text().splitlines()
    ]
    before = of(tree)
    run(tree, quilt, "push", "-aq", QUILT_PATCHES="debian/patches")
    assert is_patched(of(tree))
    run(tree, quilt, "pop", "-aq", QUILT_PATCHES="debian/patches")
    assert of(tree) == before
    shutil.rmtree(tree / ".pc")
    (tree / "debian/source").mkdir()
    (tree / "debian/source/format").write_text("3.0 (quilt)\n")
    date = "Thu, 01 Jan 1970 00:00:00 +0000"
    (tree / "debian/changelog").write_text(
        f"cutlass (4.2.1-1) unstable; urgency=low\n\n  * A.\n\n -- A <a@b.c>  {date}\n"
    )
    control = "Source: cutlass\nMaintainer: A <a@b.c>\n\nPackage: cutlass\nArchitecture: all\nDescription: x\n"
    (tree / "debian/control").write_text(control)
    run(tree.parent, dpkg_source, "-b", NAME)
    run(tree.parent, dpkg_source, "--no-check", "-x", "cutlass_4.2.1-1.dsc", "unpacked")
    assert is_patched(of(tree.parent / "unpacked"))


@pytest.fixture
def pkgbuild(source: Path, lines: Lines) -> Path:
    """A PKGBUILD with its sources, in a directory that anybody may use."""
    head, _, body = lines("pkgbuild", "aur").partition("\n# in prepare(), in the directory of the source\n")
    folder = source.parent / "aur"
    shutil.copyfile(source, folder / source.name)
    (folder / "PKGBUILD").write_text(
        f"pkgname=cutlass\npkgver=4.2.1\npkgrel=1\narch=(any)\nsource=({source.name})\nsha256sums=({sha256(source)})\n"
        f'{head}\nprepare() {{\n  cd "cutlass-$pkgver"\n{body}}}\npackage() {{ :; }}\n'
    )
    return folder


def test_bash_prepares_as_the_pkgbuild_says(pkgbuild: Path, source: Path, is_patched: Patched) -> None:
    (pkgbuild / "src").mkdir()
    for path in pkgbuild.glob("*.patch"):
        shutil.copyfile(path, pkgbuild / "src" / path.name)
    shutil.copytree(source.parent / NAME, pkgbuild / "src" / NAME)
    script = 'set -e; . ./PKGBUILD; srcdir=$PWD/src; cd src; sha256sum -c <(paste -d" " <(printf "%s \\n" '
    script += '"${sha256sums[@]:1}") <(printf "%s\\n" "${source[@]:1}")); prepare'
    run(pkgbuild, "bash", "-c", script)
    assert is_patched(of(pkgbuild / "src" / NAME))


def test_makepkg_checks_unpacks_and_patches(pkgbuild: Path, is_patched: Patched) -> None:
    makepkg, tools = program("makepkg"), pkgbuild / "tools"
    tools.mkdir()
    if not shutil.which("bsdtar"):
        (tools / "bsdtar").symlink_to(program("tar"))
    pkgbuild.chmod(0o777)  # it refuses to run as root
    for path in pkgbuild.parents:
        if not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o055)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    paths = f"{tools}{os.pathsep}{os.environ['PATH']}"
    run(pkgbuild, *command, makepkg, "--nobuild", "--nodeps", PATH=paths, PACMAN="true", BUILDDIR=str(pkgbuild))
    (prepared,) = pkgbuild.rglob(f"src/{NAME}")
    assert is_patched(of(prepared))


def test_rattler_build_makes_a_package_of_the_recipe(source: Path, lines: Lines, is_patched: Patched) -> None:
    python, folder = python_of("rattler_build"), source.parent / "recipe"
    text = lines("conda", "recipe/patches")
    shutil.copyfile(source, folder / source.name)
    (folder / "recipe.yaml").write_text(
        f"package:\n  name: cutlass-headers\n  version: 4.2.1\nsource:\n  path: {source.name}\n{text}"
        "build:\n  noarch: generic\n  script: cp -r include $PREFIX/\nabout:\n  summary: x\n"
    )
    program_ = (
        "from rattler_build import build_recipes as build\n"
        "build(['recipe/recipe.yaml'], output_dir='out', channel=[], test='skip', package_format='tar-bz2')\n"
    )
    run(source.parent, python, "-W", "ignore", "-c", program_)
    (package,) = source.parent.glob("out/noarch/*.tar.bz2")
    with tarfile.open(package) as archive:
        files = {name: file.read() for name in FILES if (file := archive.extractfile(name))}
    assert is_patched(files)


def test_easybuild_reads_checks_and_applies(source: Path, lines: Lines, is_patched: Patched) -> None:
    python, folder = python_of("easybuild"), source.parent / "eb"
    patches, _, checksums = lines("easybuild", "eb").partition("# behind those of the sources, in checksums:\n")
    shutil.copyfile(source, folder / source.name)
    (folder / f"{NAME}.eb").write_text(
        "easyblock = 'Tarball'\nname = 'cutlass'\nversion = '4.2.1'\nhomepage = 'https://example.org'\n"
        f"description = 'x'\ntoolchain = SYSTEM\nsources = ['{source.name}']\n{patches}"
        f"checksums = [\n    '{sha256(source)}',\n{checksums}]\nmoduleclass = 'lib'\n"
    )
    (folder / "run.py").write_text(f"""
import os
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=["--allow-use-as-root-and-accept-consequences", "--module-syntax=Tcl",
                           "--modules-tool=EnvironmentModulesC", "--prefix=prefix"], silent=True, testing=True)
from easybuild.framework.easyconfig.parser import EasyConfigParser
from easybuild.tools.filetools import apply_patch, extract_file, verify_checksum
found = EasyConfigParser("{NAME}.eb").get_config_dict()
for name, checksum in zip([*found["sources"], *found["patches"]], found["checksums"]):
    assert verify_checksum(name, checksum), name
extract_file(os.path.abspath("{source.name}"), "work", change_into_dir=False)
for name in found["patches"]:
    assert apply_patch(os.path.abspath(name), "work/{NAME}"), name
""")
    (folder / "work").mkdir()
    run(folder, python, "run.py")
    assert is_patched(of(folder / "work" / NAME))


def test_spack_takes_them_for_their_release_alone(source: Path, lines: Lines, is_patched: Patched) -> None:
    """Its directive reads the lines, and its own function applies them; nothing is concretized, which takes minutes."""
    spack, repo = program("spack"), source.parent / "repo"
    text = lines("spack", "repo/packages/cutlass")
    (repo / "repo.yaml").write_text("repo:\n  namespace: fp4patch_test\n")
    (repo / "packages/cutlass/package.py").write_text(
        f'from spack.package import *\n\n\nclass Cutlass(Package):\n    version("4.2.1")\n    version("4.2.0")\n{text}'
    )
    (source.parent / "run.py").write_text(f"""
import types
import spack.patch, spack.repo, spack.spec
with spack.repo.use_repositories("repo") as repo:
    package = repo.get_pkg_class("fp4patch_test.cutlass")
    def of(version):
        spec = spack.spec.Spec(f"cutlass@={{version}}")
        return [patch for when, patches in package.patches.items() if spec.satisfies(when) for patch in patches]
    assert of("4.2.1") and not of("4.2.0")
    for patch in sorted(of("4.2.1"), key=lambda patch: patch.ordering_key):
        spack.patch.apply_patch(types.SimpleNamespace(source_path="{NAME}"), patch.path, patch.level)
""")
    run(source.parent, spack, "python", "run.py", SPACK_DISABLE_LOCAL_CONFIG="1")
    assert is_patched(of(source.parent / NAME))


def test_cmake_patches_what_it_fetches(source: Path, lines: Lines, is_patched: Patched) -> None:
    project = source.parent / "project"
    project.mkdir()
    text = lines("cmake", "project/patches")
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.28)\nproject(user LANGUAGES NONE)\ninclude(FetchContent)\n"
        f"FetchContent_Declare(cutlass\n  URL {source.as_uri()}\n  URL_HASH SHA256={sha256(source)}\n{text})\n"
        "FetchContent_MakeAvailable(cutlass)\n"
    )
    cmake = Path(sys.executable).parent / "cmake"
    for _ in "twice":
        run(project, cmake, "-S", ".", "-B", "build")
        assert is_patched(of(project / "build/_deps/cutlass-src"))


def test_the_commands_of_the_dockerfile_patch_the_copied_sources(
    source: Path, lines: Lines, is_patched: Patched
) -> None:
    """The instructions as a builder takes them: COPY's pattern is expanded, and RUN is a command of `sh -c`."""
    folder = source.parent
    copy, command = lines("dockerfile", "patches").rstrip("\n").split("\n")
    word, pattern, target = copy.split()
    assert (word, target) == ("COPY", "/tmp/patches/")
    (folder / "copied").mkdir()
    for path in folder.glob(pattern):
        shutil.copyfile(path, folder / "copied" / path.name)
    script = command.removeprefix("RUN ").replace("/tmp/patches/", f"{folder}/copied/")
    run(folder / NAME, "sh", "-c", script)
    assert is_patched(of(folder / NAME))


def test_git_takes_them_too(source: Path, lines: Lines, is_patched: Patched) -> None:
    tree = checkout(source.parent / NAME)
    lines("spack", "patches")
    git(tree, "apply", *sorted(map(str, (source.parent / "patches").glob("*.patch"))))
    assert is_patched(of(tree))
    assert CONVERTER in git(tree, "diff", "--name-only")
