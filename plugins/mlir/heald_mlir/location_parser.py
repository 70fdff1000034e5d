"""The parser of locations and their aliases.

MLIR prints the aliases of locations behind the operations that use them. The location of an operation may thus name an
alias of any later line; a location within another one names an alias that was defined before.
"""

from __future__ import annotations

import re

from . import attributes as a
from .lexer import BLANK
from .type_parser import TypeParser

_MAX_COORDINATE = 2**32 - 1  # of a line or a column


class LocationParser(TypeParser):
    """A parser of locations."""

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.aliases: dict[str, a.Attribute] = {}
        self.early: dict[str, int] = {}  # positions of aliases that were read before their line came
        super().__init__(text, file, line)

    def bracketed_location(self) -> a.Location:
        """Parse `loc(...)` behind an operation or an argument."""
        self.expect("loc")
        self.expect("(", " in location")
        location = self.operation_alias() if self.kind == "alias" else self.location_inside()
        self.expect(")", " in location")
        return location

    def inline_location(self) -> a.Location:
        """Parse `loc(...)` as an attribute."""
        self.advance()
        self.expect("(", " in inline location")
        location = self.location_inside()
        self.expect(")", " in inline location")
        return location

    def location_inside(self) -> a.Location:
        return self.parse_nested(self._location)

    def operation_alias(self) -> a.Location:
        """Parse the alias of an operation's location, which may be defined later."""
        at, name = self.at, self.text[1:]
        if "." in name:
            raise self.error(f"expected location, but found dialect attribute: '#{name}'", at)
        self.advance()
        attribute = self.aliases.get(name) or self._later_alias(name, at)
        if not isinstance(attribute, a.Location):
            raise self.error("expected location", at)
        return attribute

    def _later_alias(self, name: str, at: int) -> a.Attribute:
        definition = self._definition(name, len(self.source))
        if definition is None:
            raise self.error("operation location alias was never defined", at)
        here = self.at
        self.jump(definition.end())
        self.early[name] = definition.start(1)
        attribute = self.aliases[name] = self.attribute()
        self.jump(here)
        return attribute

    def _definition(self, name: str, before: int) -> re.Match[str] | None:
        definition = re.compile(rf"(?<![\w$.\-(])(#{re.escape(name)}){BLANK}=(?!=)")
        for match in definition.finditer(self.source, 0, before):
            start = match.start(1)
            if "//" not in self.source[self.source.rfind("\n", 0, start) + 1:start]:
                return match
        return None

    def _location(self) -> a.Location:
        if self.kind == "string":
            return self.name_or_place()
        if self.kind == "alias":
            return self._nested_alias()
        if self.kind == "word":
            if self.accept("unknown"):
                return a.UNKNOWN
            if self.accept("fused"):
                return self.fused_location()
            if self.accept("callsite"):
                return self.call_site()
        raise self.wrong_token("expected location instance")

    def _nested_alias(self) -> a.Location:
        at, name = self.at, self.text[1:]
        if name in self.aliases or not self.early or "." in name or self._definition(name, at) is None:
            attribute = self.attribute()
        else:  # within an alias that was read early
            self.advance()
            attribute = self._later_alias(name, at)
        if not isinstance(attribute, a.Location):
            from .attribute_text import attribute_text

            raise self.error(f"expected location attribute, but got{attribute_text(attribute)}")
        return attribute

    def name_or_place(self) -> a.Location:
        """Parse `"name"`, `"name"(child)`, `"file":line:column`, or `"file":line:column to line:column`."""
        text = self.string_value()
        if not self.accept(":"):
            if not self.accept("("):
                return a.NameLoc(text)
            child = self.location_inside()
            self.expect(")", " after child location of NameLoc")
            return a.NameLoc(text, child)
        line = self.coordinate("line")
        if not self.accept(":"):
            return a.FileLineColLoc(text, line, 0)
        column = self.coordinate("column")
        if not (self.kind == "word" and self.accept("to")):
            return a.FileLineColLoc(text, line, column)
        end_line = self.coordinate("line") if self.kind == "number" else line
        if not self.accept(":"):
            raise self.wrong_token("expected either integer or `:` post `to` in FileLineColRange")
        return a.FileRangeLoc(text, line, column, end_line, self.coordinate("column"))

    def coordinate(self, name: str) -> int:
        """Parse the number of a line or a column."""
        text, what = self.text, f"integer {name} number in FileLineColRange"
        if self.kind != "number" or "." in text:
            raise self.wrong_token(f"expected {what}")
        number = int(text[:20], 16 if text.startswith("0x") else 10)
        if number > _MAX_COORDINATE:
            raise self.error(f"expected {what}")
        self.advance()
        return number

    def fused_location(self) -> a.Location:
        metadata = None
        if self.accept("<"):
            metadata = self.attribute()
            self.expect(">", " after fused location metadata")
        locations = tuple(self.comma_list("[", "]", self.location_inside, " in fused location"))
        return a.FusedLoc(locations, metadata)

    def call_site(self) -> a.Location:
        self.expect("(", " in callsite location")
        callee = self.location_inside()
        self.expect("at", " in callsite location")
        caller = self.location_inside()
        self.expect(")", " in callsite location")
        return a.CallSiteLoc(callee, caller)
