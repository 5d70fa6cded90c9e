"""The edit operations. A new one is one file in this package, and one entry of ``Edit``."""

from fp4patch.edits.add_element import AddElement
from fp4patch.edits.add_item import AddItem
from fp4patch.edits.diff import Diff
from fp4patch.edits.insert import Insert
from fp4patch.edits.operation import Retired
from fp4patch.edits.replace import Replace
from fp4patch.edits.wrap_asm import WrapAsm

Edit = Insert | WrapAsm | Replace | AddElement | AddItem | Diff

__all__ = ["AddElement", "AddItem", "Diff", "Edit", "Insert", "Replace", "Retired", "WrapAsm"]
