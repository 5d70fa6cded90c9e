"""The JSON documents of errors and of problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fp4patch.core.schema import SCHEMA

if TYPE_CHECKING:
    from fp4patch.core.errors import Fp4PatchError
    from fp4patch.core.problem import Problem


def problem_document(problem: Problem) -> dict[str, Any]:
    """Return one reason to refuse: "problem" in docs/json.md."""
    return {
        "patch": problem.patch,
        "file": problem.file,
        "line": problem.line,
        "expected": problem.expected,
        "found": problem.found,
        "nearest": problem.nearest,
        "help": problem.help,
        "state": problem.state.value if problem.state else None,
    }


def error_document(error: Fp4PatchError) -> dict[str, Any]:
    """Return the JSON document that docs/json.md describes."""
    return {
        "schema": SCHEMA,
        "state": "refused",
        "error": error.message,
        "help": error.help,
        "problems": [problem_document(problem) for problem in error.problems],
    }
