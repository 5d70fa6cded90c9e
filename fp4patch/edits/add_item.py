"""The edit ``add-item``: a list in the arguments of a Python call gets an item."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fp4patch.core.results import NothingToDo, Outcome, Rewritten, State
from fp4patch.core.table import SomeText
from fp4patch.edits.operation import Mistake, Operation, Template
from fp4patch.edits.python_code import PythonCode
from fp4patch.edits.refusal import Refusal
from fp4patch.edits.replace import Condition


@dataclass(frozen=True, kw_only=True)
class AddItem(Operation):
    """Add ``item`` to the end of the list that ``call`` gets as ``argument`` in the function ``within``.

    Whatever else is in the list: with ``item`` in it the edit is upstreamed. The list is written out in the call, once
    in the function; one in a variable is only looked at. The edit does not apply to a file without the function.
    """

    op: Literal["add-item"] = "add-item"
    within: SomeText
    """Name of the function with the call."""
    call: SomeText
    """Name of the function or method that is called: ``get_nvcc_flags_list``."""
    argument: SomeText
    """Name of the argument: ``supported_major_versions``."""
    item: SomeText
    """Python expression of the item: ``12``."""
    because: SomeText = "upstream's list has it"
    """Reason why nothing is to do where the list has the item, as printed."""
    condition: Condition | None = None
    """Check of what the list decides, which ``verify`` runs."""

    @property
    def subject(self) -> str:
        """The name of the function."""
        return self.within

    @property
    def texts(self) -> tuple[str, ...]:
        """The key with an expression."""
        return ("item",)

    def change(self, text: str, _template: Template, _options: Mapping[str, str], /) -> Outcome:
        """Return the text with the item in the list; NothingToDo if it is there, or the function is not."""
        if self.within not in text or not (code := PythonCode(text, self.within)).is_about(self.within):
            return NothingToDo(State.NOT_NEEDED, self.not_needed, elsewhere=True)
        lists = code.lists(self.call, self.argument)
        if lists and all(self.item in found.items for found in lists):
            return NothingToDo(State.UPSTREAMED, self.because)
        place = f"`{self.call}` with a list as {self.argument} in `{self.within}`"
        if len(lists) != 1:
            raise Refusal(f"1 call of {place}", f"{len(lists)}", lists[1].line if lists else None)
        (found,) = lists
        if not found.longer(self.item):
            what = f"`{found.text}`" if found.text.strip("[](){}") else f"`{found.text}`, which has no items"
            raise Refusal(f"{place} that is written out", what, found.line)
        if (places := len(code.lines(found.text))) != 1:
            raise Refusal(f"1 of `{found.text}` in `{self.within}`", f"{places} of `{found.text}`", found.line)
        changed, lines = code.replaced(found.text, found.longer(self.item))
        return Rewritten(changed, tuple(lines))

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield what cannot be read, and what is no name."""
        yield from super().mistakes(folder)
        for key in ("within", "call", "argument"):
            if not getattr(self, key).isidentifier():
                yield Mistake(key, "a name of Python", repr(getattr(self, key)))
