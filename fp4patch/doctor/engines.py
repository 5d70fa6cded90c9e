"""The container engine that ``fp4patch build`` would use: docker with buildx; podman is distinguished."""

import shutil

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.core.errors import ImageError
from fp4patch.doctor.surroundings import Surroundings, said
from fp4patch.images import engine

ONLY_BUILD = "only images need one"


def examine(s: Surroundings) -> tuple[Finding, ...]:
    """Client, daemon and buildx."""
    if shutil.which("docker", path=s.path):
        return _daemon(s), _buildx(s)
    podman = shutil.which("podman", path=s.path)
    if podman is None:
        return (remedies.finding(Level.YELLOW, "container engine", f"none; {ONLY_BUILD}", "no_engine"),)
    version = said([podman, "--version"], s.environ)[1].splitlines()[0]
    about = f"{version}, no docker; {ONLY_BUILD}"
    return (remedies.finding(Level.YELLOW, "container engine", about, "podman_alone"),)


def _daemon(s: Surroundings) -> Finding:
    client, server, complaint = engine.versions(s.environ)
    if server:
        return Finding(Level.GREEN, "container engine", f"docker {client}, daemon {server.get('Version', '')}")
    why = f": {complaint.splitlines()[-1]}" if complaint and not client else ""
    about = f"docker{f' {client}' if client else ''}, but no daemon responds{why}; {ONLY_BUILD}"
    return Finding(Level.YELLOW, "container engine", about, engine.remedy(complaint))


def _buildx(s: Surroundings) -> Finding:
    try:
        return Finding(Level.GREEN, "buildx", f"v{engine.buildx(s.environ)}")
    except ImageError as error:
        return Finding(Level.YELLOW, "buildx", f"{error}; {ONLY_BUILD}", error.help)
