"""Build recipes: Dockerfiles, scripts and patch files, of which only the text is looked at.

Some take SM121 out of CUTLASS's guard, in the belief that the conversion instruction is absent on GB10; others set
flags or lists with which a build ends.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import Recipe, known
from fp4patch.doctor.builds import wrong_form
from fp4patch.doctor.settings import Setting

# Example: Dockerfile.sm120
RECIPE = re.compile(r"([\w.-]*Dockerfile[\w.-]*|Containerfile|[Mm]akefile|.*\.(sh|bash|patch|diff|mk|dockerfile))")
"""Names of Dockerfiles, scripts and patches."""
# Example: s/120a/120f/
_SUBSTITUTES = re.compile(
    r"\bs(?P<sign>[^\w\s\\])(?P<old>(?:\\.|(?!(?P=sign)).)*)(?P=sign)(?P<new>(?:\\.|(?!(?P=sign)).)*)(?P=sign)"
)
_DELETES = re.compile(r"/([^/]*)/\s*d\b")
# Example: replace("-DENABLE_NVFP4_SM120=1", ""
_REPLACES = re.compile(r"(?:replace|sub)\(\s*[rf]?(['\"])(?P<old>.*?)\1\s*,\s*[rf]?(['\"])(?P<new>.*?)\3")
# Example: NVCC_APPEND_FLAGS="-arch=sm_120a
_FLAGS = re.compile(r"(NVCC_(?:APPEND|PREPEND)_FLAGS)\b.*?((?:-arch|--gpu-architecture)[= ]sm_((\d+)[af]))\b")
# Example: @@ -1,2 +1,2 @@\n-set(A 120)\n+set(A 121)
_HUNK_OR_COMMAND = re.compile(r"^@@.*(?:\n(?!--- )[-+ ].*|\n(?=\n|\Z))*|^(?:.*\\\n)*.+", re.MULTILINE)
_GROUP = re.compile(r"\\?\((.*?)\\?\)")


def removals(texts: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each line of a project's recipes that takes the GPU out of the guard."""
    recipe = known().recipe
    return [
        Finding(
            Level.YELLOW,
            f"{path}:{line}",
            f"removes {recipe.macro} from {recipe.subject}: {words}",
            recipe.remedy,
            link=recipe.link,
        )
        for path, text in texts.items()
        for line, words in _removals(text, recipe)
    ]


def refused(builds: Mapping[str, str], found: Sequence[Setting]) -> list[Finding]:
    """Return a finding for each flag that every nvcc of a build gets, and for each list that its reader refuses.

    ``builds``: the text of each build file; ``found``: what they set.
    """
    findings = []
    for path, text in builds.items():
        for number, line in enumerate(text.splitlines(), 1):
            if flag := _FLAGS.search(line):
                subject, why = f"{path}:{number}", f"{flag[1]} has {flag[2]}, which adds PTX for plain sm_{flag[4]}"
                why += ": ptxas refuses the FP4 instructions in it"
                findings.append(remedies.finding(Level.RED, subject, why, "flags_for_every_nvcc", number=flag[3]))
    for setting in found:
        if not re.search("[$%{<@`]", setting.value) and (wrong := wrong_form(setting.name, setting.value)):
            why = f"{setting.name}={setting.value}: {wrong}"
            findings.append(remedies.finding(Level.RED, setting.place, why, "list_not_archs", setting=setting.name))
    return findings


def _removals(text: str, recipe: Recipe) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each command or hunk that leaves fewer of the macro than there were."""
    macro, concerns = recipe.macro, re.compile(recipe.about, re.IGNORECASE)
    for part in _HUNK_OR_COMMAND.finditer(text):
        if macro not in part[0] or not concerns.search(part[0]):
            continue
        line, command = text.count("\n", 0, part.start()) + 1, part[0].replace("\\\n", "")
        taken, added = ("\n".join(re.findall(rf"^[{sign}].*", part[0], re.MULTILINE)) for sign in "-+")
        if not command.startswith("@@"):
            if _removes(command, macro):
                yield line, " ".join(command.split())[:160]
        elif taken.count(macro) > added.count(macro):
            yield line, next(removed.strip() for removed in taken.splitlines() if macro in removed)


def _removes(command: str, macro: str) -> bool:
    if not re.search(r"\b(sed|perl)\b", command):
        return any(one["old"].count(macro) > one["new"].count(macro) for one in _REPLACES.finditer(command))
    if any(macro in one[1] for one in _DELETES.finditer(command)):
        return True
    for one in _SUBSTITUTES.finditer(command):
        groups = _GROUP.findall(one["old"])
        new = re.sub(r"(?<!\\)&", one["old"].replace("\\", r"\\\\"), one["new"])
        kept = [groups[int(n) - 1] for n in re.findall(r"\\([1-9])", new) if int(n) <= len(groups)]
        if one["old"].count(macro) > "".join([new, *kept]).count(macro):
            return True
    return False
