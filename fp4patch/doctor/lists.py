"""Results of builds for the arch lists in the environment, by the record of the newest surveyed releases."""

from collections.abc import Mapping, Sequence

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.catalog.manifest import Catalog
from fp4patch.catalog.target import Build
from fp4patch.core.arch import GPUS, Arch, Reach, reach
from fp4patch.core.cuda import refused
from fp4patch.core.wording import listed
from fp4patch.doctor.builds import names, quoted
from fp4patch.doctor.surveyed import SurveyedRelease, surveyed


def judge_list(catalog: Catalog, finding: Finding, value: str, gpus: Sequence[Arch], cuda: Version | None) -> Finding:
    """Return the finding about an arch list that replaces ``finding``, which concerns its form alone.

    ``gpus``: those that matter; if there are none, those that the list names. A red finding stays: the list has no
    meaning for its build.
    """
    readers = {t.name: t for t in catalog.targets.values() if t.build and t.build.setting == finding.subject}
    release = next((r for r in reversed(surveyed(catalog.root)) if r.target in readers), None)
    own = _sm12x(value)
    if finding.level is Level.RED or own is None or release is None:
        return finding
    target = readers[release.target]
    assert target.build
    named = tuple(gpu for gpu in GPUS if names(value, gpu))
    matter = [gpu for gpu in gpus or named if gpu in GPUS]
    if not matter:
        return finding
    made = {asked: _reaches(release, target.build, asked, cuda) for asked in target.build.lists}
    suited = [asked for asked in made if asked and all(made[asked].get(gpu, ("", False))[1] for gpu in matter)]
    remedy = (
        {"cause": "list_for_gpus", "setting": finding.subject, "list": quoted(min(suited, key=len))}
        if suited
        else {"cause": "list_unknown"}
    )
    here = next((made[asked] for asked in made if asked and own and _sm12x(asked) == own), None)
    if not here:
        if finding.level is not Level.GREEN:
            return remedies.finding(finding.level, finding.subject, finding.found, **remedy)
        lacking = (
            "the survey of releases does not have this list" if own else f"it has no target for {listed(matter, 'or')}"
        )
        return remedies.finding(Level.YELLOW, finding.subject, f"{value}: {lacking}", **remedy)
    words = "; ".join(f"{gpu} {here[gpu][0]}" for gpu in matter)
    about = f"{value}: {target.title} {release.version} compiles its FP4 kernels for {words}"
    if all(here[gpu][1] for gpu in matter):
        return Finding(Level.GREEN, finding.subject, about)
    return remedies.finding(Level.RED if gpus else Level.YELLOW, finding.subject, about, **remedy)


def _reaches(
    release: SurveyedRelease, build: Build, asked: str, cuda: Version | None
) -> Mapping[Arch, tuple[str, bool]]:
    """Return for each GPU what it gets of a list, in words, and whether that is FP4 code; nothing if not recorded."""
    cudas = [name for name in release.builds if cuda is None or Version(name).major == cuda.major]
    found: dict[Arch, tuple[str, bool]] = {}
    for name in cudas:
        made = release.builds[name].get(asked)
        if made is None:
            return {}
        on = cuda or Version(name)
        for number, gpu in enumerate(GPUS):
            words, good = _of_gpu(made, number, gpu, build, on)
            if gpu not in found or not good:
                found[gpu] = f"{words} (CUDA {on})", good
    return found


def _of_gpu(made: Sequence[str], number: int, gpu: Arch, build: Build, cuda: Version) -> tuple[str, bool]:
    if build.kind == "jit":  # in words, for each GPU: `12.1a; quantization 12.0f: native`
        return f"as {made[number]}", made[number].endswith(f": {Reach.SUFFIXED.value}")
    archs = [Arch.parse(arch) for arch in made]
    if stops := refused(cuda, archs):
        return f"nothing, since {stops}", False
    got = reach(archs, gpu)
    return f"as {', '.join(made) or 'nothing'}, {got.value}", got is Reach.SUFFIXED


def _sm12x(value: str) -> frozenset[Arch] | None:
    """Return the parts of a list that decide about FP4 kernels for SM12x, or None if a part is no architecture."""
    try:
        parts = Arch.parse_list(value, ptx=True)
    except ValueError:
        return None
    return frozenset(part for part in parts if part.major == 12)
