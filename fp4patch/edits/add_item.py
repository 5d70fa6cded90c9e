"""The edit ``add-item``: a list in the arguments of a Python call gets an item."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fp4patch.core.results import NothingToDo, State
from fp4patch.core.table import SomeText
from fp4patch.edits.operation import Change, Condition, Mistake, Operation, Template
from fp4patch.edits.python_code import PythonCode
from fp4patch.edits.python_source import Module
from fp4patch.edits.refusal import Refusal


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

    @property
    def checked_condition(self) -> Condition | None:
        """The condition, which begins with the function unless it says otherwise."""
        return self.condition and replace(self.condition, begins=self.condition.begins or self.subject)

    @property
    def _outside(self) -> NothingToDo:
        return NothingToDo(State.NOT_NEEDED, self.not_needed, elsewhere=True)

    def passes_over(self, text: str, /) -> NothingToDo | None:
        """Return that the edit is not about a text without the function's name."""
        return None if self.within in text else self._outside

    def change(self, module: Module, _template: Template, _options: Mapping[str, str], /) -> Change | NothingToDo:
        """Return the change that puts the item into the list; NothingToDo if it is there, or the function is not."""
        code = PythonCode(module, self.within)
        if not code.is_about(self.within):
            return self._outside
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
        return code.replaced(found.text, found.longer(self.item))

    def mistakes(self, folder: Path, /) -> Iterator[Mistake]:
        """Yield what cannot be read, and what is no name."""
        yield from super().mistakes(folder)
        for key in ("within", "call", "argument"):
            if not getattr(self, key).isidentifier():
                yield Mistake(key, "a name of Python", repr(getattr(self, key)))
