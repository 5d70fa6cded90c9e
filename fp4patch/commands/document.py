"""JSON documents of results, by pydantic from their dataclasses."""

from dataclasses import dataclass
from typing import Any, Literal

from fp4patch.core.document import Report
from fp4patch.core.errors import Fp4PatchError
from fp4patch.core.problem import Problem
from fp4patch.core.schema import SCHEMA


@dataclass(frozen=True)
class Failure(Report):
    """An error of a command that cannot do its work, or cannot parse its command line."""

    error: str
    """Description in one sentence."""
    help: str
    """Recommended next step."""
    problems: tuple[Problem, ...]
    """Every reason to refuse."""
    state: Literal["refused"] = "refused"


def failure(error: Fp4PatchError) -> Failure:
    """Return the document of an error."""
    return Failure(error.message, error.help, error.problems)


def document(result: Report) -> dict[str, Any]:
    """Return the document of a result as values of JSON."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - it takes a while to load

    adapter = TypeAdapter(type(result))
    found: dict[str, Any] = adapter.dump_python(result, mode="json", by_alias=True, exclude_defaults=result.sparse)
    return {"schema": SCHEMA} | found
