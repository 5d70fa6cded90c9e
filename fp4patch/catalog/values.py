"""The classes of the model that catalogs and folds consist of, by name: what the user's cache may give back."""

from fp4patch import edits
from fp4patch.catalog import patch, probe, rule, target, variant
from fp4patch.core import outcome, problem, state
from fp4patch.core.kept import classes

CLASSES = classes(edits, outcome, patch, probe, problem, rule, state, target, variant)
