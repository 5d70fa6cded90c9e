"""Labels of an image, and the check of an image's claims: labels, receipts, verdicts, files.

The verdict is the one that ``verify`` gave, once; the proof has the hashes of the documents that it wrote and saw.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import fp4patch
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Verdict, verdict_on
from fp4patch.core.wording import counted
from fp4patch.images.image import PRODUCT, BuildRequest, Statement

OURS = "io.fp4patch."
SOURCE = "https://github.com/fp4patch/fp4patch"
SUMS = "SHA256SUMS"
"""File of the proof with the hashes of verify.json and the receipts, as ``sha256sum`` writes and checks it."""


def labels(request: BuildRequest) -> dict[str, str]:
    """Return the image's labels: OCI's own keys, and ``io.fp4patch.*`` for the patches and the pins.

    There are none where files are written, which have no place for them.
    """
    if request.output:
        return {}
    trees = {name: source.pin.get("version", "local") for name, source in request.trees.items()}
    product = trees[PRODUCT]
    return {
        "org.opencontainers.image.title": f"vLLM {product} with fp4patch {request.variant}",
        "org.opencontainers.image.version": f"{product}-{request.variant}",
        "org.opencontainers.image.source": SOURCE,
        "org.opencontainers.image.base.name": request.runtime_image,
        f"{OURS}version": fp4patch.__version__,
        f"{OURS}variant": request.variant,
        f"{OURS}patches": ", ".join(request.patches),
        f"{OURS}arch": ",".join(str(arch) for arch in request.archs.asked),
        **{f"{OURS}{name}": release for name, release in trees.items()},
        f"{OURS}torch": request.torch.version,
        f"{OURS}cuda": request.cuda,
        **({f"{OURS}stacks": ", ".join(stacks)} if (stacks := _stacks(request)) else {}),
    }


def _stacks(request: BuildRequest) -> list[str]:
    """Return each stack of patches with its hash: ``vllm/carried SHA256``."""
    of_stacks = (patch for patch in request.outside if patch.origin.stack)
    return sorted({f"{patch.target}/{patch.origin.stack} {patch.origin.stack_sha256}" for patch in of_stacks})


# --- re-checking -----------------------------------------------------------------------------------------------------


def recheck(proof: Mapping[str, bytes], labels: Mapping[str, str] | None) -> list[Statement]:
    """Check every statement of a proof against the others, and against the labels if there are any.

    ``proof`` has the files of the proof's directory by their relative names. ImageError is raised for a file that does
    not have the form that fp4patch writes.
    """
    try:
        pins, trees = pins_of(proof), _trees(proof)
        receipts = sorted(map(json.loads, receipts_of(proof).values()), key=lambda receipt: str(receipt["target"]))
        return [
            _hashes(proof),
            _receipts(receipts, trees),
            *_verify(proof, trees, receipts, pins),
            *_binaries(proof),
            *(_labels(labels, receipts, trees, pins) if labels is not None else ()),
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ImageError(
            f"a document of the proof is not one that fp4patch writes: {error!r}", help="build the image again"
        ) from error


def pins_of(proof: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the contents of ``pins.json``; empty if there is none."""
    return dict(json.loads(proof.get("pins.json", b"{}")))


def receipts_of(proof: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the receipts, ``cutlass.json`` and ``vllm.json``, by name."""
    return {name.removeprefix("receipts/"): data for name, data in proof.items() if name.startswith("receipts/")}


Trees = Sequence[Mapping[str, Any]]
"""The documents of verify, one for each tree."""
Receipts = Sequence[Mapping[str, Any]]


def _trees(proof: Mapping[str, bytes]) -> Trees:
    document = json.loads(proof.get("verify.json", b'{"trees": []}'))
    return list(document.get("trees", [document]))


def _is_idle(tree: Mapping[str, Any]) -> bool:
    """Return whether the variant changes nothing in a tree, which then has no receipt and no result."""
    return bool(tree["verdict"] == Verdict.NOTHING)


def _hashes(proof: Mapping[str, bytes]) -> Statement:
    """Compare what verify wrote, and the receipts of the trees that it read, with their hashes from that time."""
    if SUMS not in proof:
        return Statement("hashes", Verdict.FAIL, f"there is no {SUMS}: build the image again")
    lines = proof[SUMS].decode().splitlines()
    stated = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    documents = [name for name in proof if name == "verify.json" or name.startswith("receipts/")]
    found = {name: hashlib.sha256(proof[name]).hexdigest() for name in documents}
    others = sorted(name for name in stated.keys() | found.keys() if stated.get(name) != found.get(name))
    detail = f"not as when they were verified: {', '.join(others)}" if others else f"of {', '.join(sorted(stated))}"
    return Statement("hashes", verdict_on(stated and not others), detail)


def _receipts(receipts: Receipts, verified: Trees) -> Statement:
    if not receipts:
        idle = verified and all(map(_is_idle, verified))
        return Statement("receipts", Verdict.NOTHING if idle else Verdict.FAIL, "there are none")
    trees = [f"{one['target']} {one['version']} with {one['variant']} ({len(one['files'])} files)" for one in receipts]
    variants = {one["variant"] for one in receipts}
    return Statement("receipts", verdict_on(len(variants) == 1), ", ".join(trees))


def _verify(
    proof: Mapping[str, bytes], trees: Trees, receipts: Receipts, pins: Mapping[str, Any]
) -> Iterator[Statement]:
    """Return the verdict of verify, and check that it is about the same trees as the receipts."""
    if "verify.json" not in proof:
        yield Statement("verify", Verdict.FAIL, "there is no verify.json")
        return
    verdict = Verdict(json.loads(proof["verify.json"])["verdict"])
    results = [result for tree in trees for result in tree["results"]]
    builds = sum(len(tree["builds"]) for tree in trees)
    counts = f"{len(results)} results, {sum(len(result['checks']) for result in results)} checks"
    counts += f", {counted(builds, 'evaluation')} of the build" if builds else ""
    yield Statement("verify", verdict, f"{counts}; the verdict is {verdict}")
    by_target = {tree["target"]: tree for tree in trees}
    by_receipt = {receipt["target"]: receipt for receipt in receipts}
    for target in [*by_receipt, *(name for name in by_target if by_target[name]["patches"] and name not in by_receipt)]:
        same = target in by_target and target in by_receipt and _is_about(by_target[target], by_receipt[target])
        detail = "verified as patched" if same else "what was verified is not what the receipt states"
        yield Statement(f"receipt of {target}", verdict_on(same), detail)
    yield _architectures([tree for tree in trees if not _is_idle(tree)], set(pins.get("judged", ())))


def _architectures(trees: Trees, judged: Collection[str]) -> Statement:
    """Compare the architectures to be judged with those for which each tree has results, or, of a tree that its build
    alone judges, with those that verify was asked for."""
    if not trees:
        return Statement("architectures", Verdict.NOTHING, "no tree has anything to verify")
    of_each = [
        {result["arch"] for result in tree["results"] if result["arch"] in tree["arch"]}
        if tree["results"]
        else {*tree["arch"]}
        for tree in trees
    ]
    looked = set[str].intersection(*of_each)
    detail = f"verified for {', '.join(sorted(looked))}; to be judged: {', '.join(sorted(judged)) or 'not known'}"
    return Statement("architectures", verdict_on(judged and looked.issuperset(judged)), detail)


def _is_about(tree: Mapping[str, Any], receipt: Mapping[str, Any]) -> bool:
    """Return whether a verify document is about the tree of a receipt; it names the patches that changed something."""
    changed = {patch for file in receipt["files"].values() for patch in file["patches"]}
    patches = [patch for patch in receipt["patches"] if patch in changed]
    same = (tree["variant"], tree["version"]) == (receipt["variant"], receipt["version"])
    return same and list(tree["patches"]) == patches


def _binaries(proof: Mapping[str, bytes]) -> list[Statement]:
    if "binaries.json" not in proof:
        return []
    document = json.loads(proof["binaries.json"])
    verdict = str(document.get("verdict", "missing"))
    has_code = any(binary["files"] for binary in document.get("binaries", ()))
    detail = f"the scan of the built files is {verdict}" + ("" if has_code else ", and found no code for a GPU")
    return [Statement("binaries", verdict_on(has_code and verdict in ("green", "yellow")), detail)]


def _labels(
    labels: Mapping[str, str], receipts: Receipts, verified: Trees, pins: Mapping[str, Any]
) -> Iterator[Statement]:
    """Compare each of our labels with the file of the proof that states the same fact."""
    trees = pins.get("trees", {})
    documents = [*receipts, *verified]
    expected = {
        "variant": ", ".join(sorted({document["variant"] for document in documents})),
        "patches": ", ".join(patch for receipt in receipts for patch in receipt["patches"]),
        "version": ", ".join(sorted({document["fp4patch"] for document in documents})),
        "arch": ",".join(pins.get("arch", ())),
        "torch": pins.get("torch", {}).get("version", ""),
        "cuda": pins.get("cuda", ""),
    }
    for name in sorted({PRODUCT, *trees, *(receipt["target"] for receipt in receipts)}):
        expected[name] = trees[name].get("version", "local") if name in trees else ""
    stacks = {
        f"{receipt['target']}/{diff['stack']} {diff['stack_sha256']}"
        for receipt in receipts
        for diff in receipt.get("diffs", ())
        if diff.get("stack")
    }
    if stacks or OURS + "stacks" in labels:
        expected["stacks"] = ", ".join(sorted(stacks))
    idle = tuple(f"{tree['target']}/" for tree in verified if _is_idle(tree))
    for name, proven in expected.items():
        label = labels.get(OURS + name, "")
        if name in ("patches", "stacks"):  # made before anybody knew that a tree needs none of them
            label = ", ".join(patch for patch in label.split(", ") if not patch.startswith(idle))
        detail = f"the label has {label or 'nothing'}, the proof {proven or 'nothing'}"
        detail = label or "nothing" if label == proven else detail
        yield Statement(f"label {OURS}{name}", verdict_on(label == proven), detail)
