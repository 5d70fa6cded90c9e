"""Build recipes: Dockerfiles, scripts and patch files, of which only the text is looked at.

Some take SM121 out of CUTLASS's guard, in the belief that the conversion instruction is absent on GB10; others set
flags or lists with which a build ends.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from fp4patch.binaries import remedies
from fp4patch.binaries.findings import Finding, Level
from fp4patch.binaries.known_programs import Recipe, known
from fp4patch.core import process
from fp4patch.doctor.builds import wrong_form
from fp4patch.doctor.readings.reading import Command, Kind, Rewrite
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
# Example: @@ -1,2 +1,2 @@\n-set(A 120)\n+set(A 121)
_HUNK_OR_COMMAND = re.compile(r"^@@.*(?:\n(?!--- )[-+ ].*|\n(?=\n|\Z))*|^(?:.*\\\n)*.+", re.MULTILINE)
# Example: 12.1a
_TARGET = re.compile(r"(?<![\w.])(?:(?:sm_|compute_)?1[0-2]\d[af]?|1[0-2]\.\d[af]?)(?![\w.])")
_OF_SM12X = re.compile(r"(?:sm_|compute_)?12\.?\d[af]?")
_OF_SM100 = re.compile(r"(?:sm_|compute_)?10\.?\d[af]?")
_ABOUT = re.compile(r"gencode|ARCH|sm_1[0-2]\d|compute_1[0-2]\d")
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


def refused(flags: Sequence[Setting], found: Sequence[Setting]) -> list[Finding]:
    """Return a finding for each flag that every nvcc of a build gets, and for each list that its reader refuses.

    ``flags``: what NVCC_APPEND_FLAGS and its like have; ``found``: what the build files set.
    """
    findings = []
    for setting in flags:
        if setting.name == "-arch" and (target := next((arch for arch in setting.code if arch.suffix), None)):
            why = f"a flag for every nvcc has {setting.name} {setting.value}, which adds PTX for plain {target.gpu}"
            why += ": ptxas refuses the FP4 instructions in it"
            found_one = remedies.finding(
                _level(setting), setting.place, why, "flags_for_every_nvcc", number=target.number
            )
            findings.append(found_one)
    for setting in found:
        if (
            setting.literal
            and not re.search("[$%{<@`]", setting.value)
            and (wrong := wrong_form(setting.name, setting.value))
        ):
            why = f"{setting.name}={setting.value}: {wrong}"
            findings.append(
                remedies.finding(_level(setting), setting.place, why, "list_not_archs", setting=setting.name)
            )
    return findings


def _level(setting: Setting) -> Level:
    """Return the level of what ends a build: it is red where the file itself sets it whatever the user does."""
    return Level.YELLOW if setting.kind is Kind.DEFAULT or setting.condition else Level.RED


def rewrites(path: str, commands: Sequence[Command], texts: Sequence[Rewrite]) -> list[Finding]:
    """Return a finding for each command or script of a file that rewrites targets in another one.

    ``texts``: what a script in Python replaces.
    """
    findings = []
    every = [(command.line, pair, str(command)) for command in commands for pair in substitutions(command)]
    every += [(one.line, (one.old, one.new), f"replace({one.old!r}, {one.new!r})") for one in texts]
    for line, (old, new), said in every:
        before, after = set(_TARGET.findall(old)), set(_TARGET.findall(new))
        added = sorted(after - before)
        if before == after or not (before or _ABOUT.search(f"{old} {new}")):
            continue
        into_sm100 = (
            [one for one in added if _OF_SM12X.fullmatch(one)]
            if any(map(_OF_SM100.fullmatch, before & after)) or "SM100" in old
            else []
        )
        if into_sm100:
            why = f"puts {', '.join(into_sm100)} into a list of SM100's kernels, which use tcgen05: {said}"
            findings.append(remedies.finding(Level.YELLOW, f"{path}:{line}", why, "list_of_sm100"))
        else:
            findings.append(
                Finding(Level.NONE, f"{path}:{line}", f"rewrites targets, and what it leaves is not read here: {said}")
            )
    return findings


def may_rewrite(text: str) -> bool:
    """Return whether a recipe has a command that replaces something and names a target: those without it have none."""
    by_command, by_script = "sed" in text or "perl" in text, "replace(" in text or "sub(" in text
    if not ((by_command or by_script) and _TARGET.search(text)):
        return False
    replaced = [*_SUBSTITUTES.finditer(text)] if by_command else []
    replaced += _REPLACES.finditer(text) if by_script else ()
    return any(_TARGET.search(f"{one['old']} {one['new']}") for one in replaced)


def substitutions(command: Command) -> list[tuple[str, str]]:
    """Return what a ``sed`` or ``perl`` replaces with what."""
    if command.program not in ("sed", "perl") or any(word.unknown for word in command.words):
        return []
    return [(one["old"], one["new"]) for word in command.words[1:] for one in _SUBSTITUTES.finditer(word.text)]


def rewritten(command: Command, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a project that a ``sed -i`` changes, as sed itself changes their texts."""
    words = [word.text for word in command.words]
    is_certain = not command.condition and not any(word.unknown for word in command.words)
    if (
        command.program != "sed"
        or not is_certain
        or not any(re.fullmatch(r"-\w*i.*|--in-place.*", word) for word in words)
    ):
        return {}
    named = [name for name in texts for word in words[2:] if word == name or word.endswith(f"/{name}")]
    changed = {}
    for name in dict.fromkeys(named):
        options = [word for word in words[1:] if not (word == name or word.endswith(f"/{name}") or word in named)]
        plain = [re.sub(r"^-(\w*)i\S*$", r"-\1", word) for word in options if not word.startswith("--in-place")]
        try:
            done = process.run(
                ["sed", "--sandbox", *(word for word in plain if word != "-")], text=texts[name], limit=5
            )
        except OSError:
            return {}
        if not done.status and done.out != texts[name]:
            changed[name] = done.out
    return changed


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
