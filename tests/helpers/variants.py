"""The shipped variants, for tests of what each of them does."""

from fp4patch.catalog.manifest import load

VARIANTS = tuple(load().variants)
"""Names of all variants."""


def encoder(variant: str, target: str) -> str:
    """Return the encoder that a variant adds beside a target's own conversions; empty if it adds none."""
    return load().variant(variant).options_of(target).get("e2m1-asm", {}).get("encoder", "")


GUARDED = tuple(name for name, one in load().variants.items() if "e2m1-guard" in one.targets["cutlass"].patches)
"""Variants in which SM121 leaves CUTLASS's hardware conversion."""
