"""Labels of an image, and the check of an image's claims: labels, receipts, verdicts, files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fp4patch
from fp4patch.core.errors import ImageError
from fp4patch.core.results import Verdict, verdict_on
from fp4patch.images.image import PRODUCT, BuildRequest, Statement

OURS = "io.fp4patch."
SOURCE = "https://github.com/fp4patch/fp4patch"


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
    }


# --- re-checking -----------------------------------------------------------------------------------------------------


def recheck(proof: Mapping[str, bytes], labels: Mapping[str, str] | None) -> list[Statement]:
    """Check every statement of a proof against the others, and against the labels if there are any.

    ``proof`` has the files of the proof's directory by their relative names. ImageError is raised for a file that does
    not have the form that fp4patch writes.
    """
    try:
        pins = pins_of(proof)
        receipts = sorted(map(json.loads, receipts_of(proof).values()), key=lambda receipt: str(receipt["target"]))
        of_labels = _labels(labels, receipts, pins) if labels is not None else ()
        return [_receipts(receipts), *_verify(proof, receipts, pins), *_binaries(proof), *of_labels]
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


Receipts = Sequence[Mapping[str, Any]]


def _receipts(receipts: Receipts) -> Statement:
    if not receipts:
        return Statement("receipts", Verdict.FAIL, "there are none")
    trees = [f"{one['target']} {one['version']} with {one['variant']} ({len(one['files'])} files)" for one in receipts]
    variants = {one["variant"] for one in receipts}
    return Statement("receipts", verdict_on(len(variants) == 1), ", ".join(trees))


def _verify(proof: Mapping[str, bytes], receipts: Receipts, pins: Mapping[str, Any]) -> Iterator[Statement]:
    """Compute the verdict again from its checks, and check that it is about the same trees as the receipts."""
    if "verify.json" not in proof:
        yield Statement("verify", Verdict.FAIL, "there is no verify.json")
        return
    document = json.loads(proof["verify.json"])
    trees = document.get("trees", [document])
    results = [result for tree in trees for result in tree["results"]]
    failed = [r["probe"] for r in results if not r["checks"]]
    failed += [p["expected"] for tree in trees for p in tree["problems"]]
    failed += dict.fromkeys(name for tree in trees for name in _failed(tree))
    passed = bool(trees) and all(tree["results"] for tree in trees) and not failed
    counts = f"{len(results)} results, {sum(len(result['checks']) for result in results)} checks, "
    counts += f"failed: {', '.join(failed)}" if failed else "none failed"
    if (document["verdict"] == "pass") is not passed:
        counts += f"; the document itself has {document['verdict']}"
    yield Statement("verify", verdict_on(passed and document["verdict"] == "pass"), counts)
    by_target = {tree["target"]: tree for tree in trees}
    by_receipt = {receipt["target"]: receipt for receipt in receipts}
    for target in [*by_receipt, *(name for name in by_target if by_target[name]["patches"] and name not in by_receipt)]:
        same = target in by_target and target in by_receipt and _is_about(by_target[target], by_receipt[target])
        detail = "verified as patched" if same else "what was verified is not what the receipt states"
        yield Statement(f"receipt of {target}", verdict_on(same), detail)
    judged = set(pins.get("judged", ()))
    of_each = [{result["arch"] for result in tree["results"] if result["arch"] in tree["arch"]} for tree in trees]
    looked = set[str].intersection(*of_each) if of_each else set()
    detail = f"verified for {', '.join(sorted(looked))}; to be judged: {', '.join(sorted(judged)) or 'not known'}"
    yield Statement("architectures", verdict_on(judged and judged <= looked), detail)


def _is_about(tree: Mapping[str, Any], receipt: Mapping[str, Any]) -> bool:
    """Return whether a verify document is about the tree of a receipt; it names the patches that changed something."""
    changed = {patch for file in receipt["files"].values() for patch in file["patches"]}
    patches = [patch for patch in receipt["patches"] if patch in changed]
    same = (tree["variant"], tree["version"]) == (receipt["variant"], receipt["version"])
    return same and list(tree["patches"]) == patches


def _failed(part: Any, name: str = "") -> Iterator[str]:
    """Yield the name of each part of a verify document whose own verdict is not *pass*."""
    if isinstance(part, dict):
        name = next((str(part[key]) for key in ("probe", "check", "subject", "function") if key in part), name)
        if part.get("verdict", "pass") != "pass":
            yield name or "the tree"
        for inner in part.values():
            yield from _failed(inner, name)
    elif isinstance(part, list):
        for inner in part:
            yield from _failed(inner, name)


def _binaries(proof: Mapping[str, bytes]) -> list[Statement]:
    if "binaries.json" not in proof:
        return []
    document = json.loads(proof["binaries.json"])
    verdict = str(document.get("verdict", "missing"))
    has_code = any(binary["files"] for binary in document.get("binaries", ()))
    detail = f"the scan of the built files is {verdict}" + ("" if has_code else ", and found no code for a GPU")
    return [Statement("binaries", verdict_on(has_code and verdict in ("green", "yellow")), detail)]


def _labels(labels: Mapping[str, str], receipts: Receipts, pins: Mapping[str, Any]) -> Iterator[Statement]:
    """Compare each of our labels with the file of the proof that states the same fact."""
    trees = pins.get("trees", {})
    expected = {
        "variant": ", ".join(sorted({receipt["variant"] for receipt in receipts})),
        "patches": ", ".join(patch for receipt in receipts for patch in receipt["patches"]),
        "version": ", ".join(sorted({receipt["fp4patch"] for receipt in receipts})),
        "arch": ",".join(pins.get("arch", ())),
        "torch": pins.get("torch", {}).get("version", ""),
        "cuda": pins.get("cuda", ""),
    }
    for name in sorted({PRODUCT, *trees, *(receipt["target"] for receipt in receipts)}):
        expected[name] = trees[name].get("version", "local") if name in trees else ""
    for name, proven in expected.items():
        label = labels.get(OURS + name, "")
        detail = f"the label has {label or 'nothing'}, the proof {proven or 'nothing'}"
        detail = label or "nothing" if label == proven else detail
        yield Statement(f"label {OURS}{name}", verdict_on(label == proven), detail)
