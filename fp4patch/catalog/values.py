"""The classes of the model that catalogs and folds consist of, by name: what the user's cache may give back."""

from __future__ import annotations

from fp4patch.model import edit, outcome, patch, probe, problem, rule, state, target, variant
from fp4patch.sources.kept import classes

CLASSES = classes(edit, outcome, patch, probe, problem, rule, state, target, variant)
