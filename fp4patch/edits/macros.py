"""The promise ``macros``: a header defines a macro for some compile targets, and no other file does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.version import Version

from fp4patch.core.arch import Arch
from fp4patch.core.lex_error import LexError
from fp4patch.core.table import ArchName, Identifier, TreePath, VersionText
from fp4patch.cxx.preprocessor import Header
from fp4patch.cxx.tokens import lex
from fp4patch.edits.look import Look, words_of
from fp4patch.edits.operation import PatchedTree, Place, Search
from fp4patch.edits.promise import Breach, Promise, Read


@dataclass(frozen=True, kw_only=True)
class MacroPromise(Promise):
    """Compile targets for which a header of the patched tree must not define a macro, or define it as before."""

    header: TreePath
    name: Identifier
    include: tuple[str, ...]
    """Directories of the tree that the compiler searches for includes."""
    cuda: VersionText
    """CUDA release whose compiler is assumed."""
    off: tuple[ArchName, ...]
    same: tuple[ArchName, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """The header."""
        return (self.header,)

    def searches(self, language: str, _version: Version | None, /) -> Iterator[Search]:
        """Yield the search for definitions in other files."""
        if language == "c++":
            look = Look(words_of(("define", self.name)))
            yield Search(look, self._elsewhere, f"{self.name} defined in {self.header} alone")

    def _elsewhere(self, _tree: PatchedTree, file: str, text: str, /) -> Iterable[Place]:
        if file == self.header:
            return []
        try:
            source = lex(text)
            return [
                Place(source.token(at).line, f"#define {self.name}") for at in source.find(("#", "define", self.name))
            ]
        except LexError as error:
            return [Place(error.line, error.message)]

    def breaches(self, before: Read, after: Read, /) -> Iterator[Breach]:
        """Yield the targets for which the header defines the macro and must not, or not as before."""
        if after(self.header) is None:
            yield Breach(self.header, None, "the file is there", "no such file")
            return
        old, new = (Header(self.header, read, self.include) for read in (before, after))
        for arch in (*self.off, *self.same):
            was, found = (header.macro(self.name, Arch.parse(arch), self.cuda) for header in (old, new))
            if found and found.undecided:
                expected = f"conditions of {self.name} that the tree decides"
                yield Breach(*found.place, expected, f"{found.undecided}, which nothing in the tree defines")
            elif found and arch in self.off:
                yield Breach(*found.place, f"{self.name} not defined for {arch}", "a definition")
            elif arch in self.same and (found is None) != (was is None):
                yield Breach(self.header, None, f"{self.name} for {arch} as upstream has it", "another")
