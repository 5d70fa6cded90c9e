"""The edit operations. A new one is one file in this package, and one entry of ``Edit``."""

from fp4patch.edits.add_element import AddElement
from fp4patch.edits.add_operand import AddOperand
from fp4patch.edits.drop_operand import DropOperand
from fp4patch.edits.insert import Insert
from fp4patch.edits.insert_commands import InsertCommands
from fp4patch.edits.operation import Retired
from fp4patch.edits.replace_command import ReplaceCommand
from fp4patch.edits.replace_expression import ReplaceExpression
from fp4patch.edits.replace_tokens import ReplaceTokens
from fp4patch.edits.wrap_asm import WrapAsm

Edit = (
    DropOperand
    | AddOperand
    | Insert
    | WrapAsm
    | ReplaceTokens
    | ReplaceExpression
    | AddElement
    | ReplaceCommand
    | InsertCommands
)

__all__ = [
    "AddElement",
    "AddOperand",
    "DropOperand",
    "Edit",
    "Insert",
    "InsertCommands",
    "ReplaceCommand",
    "ReplaceExpression",
    "ReplaceTokens",
    "Retired",
    "WrapAsm",
]
