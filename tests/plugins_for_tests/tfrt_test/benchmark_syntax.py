"""The syntax of `tfrt_test.benchmark`, which no assembly format can say.

    tfrt_test.benchmark "add"(%a : i32, %b : i32) duration_secs = 1, max_count = 100 { ... }
"""

from __future__ import annotations

from heald_mlir.attributes import IntegerAttr, StringAttr
from heald_mlir.ir import Operation
from heald_mlir.lexer import unescaped_text
from heald_mlir.types import I32, OpaqueType

CHAIN = OpaqueType("tfrt", "chain")
NUMBERS = "duration_secs", "max_count", "num_warmup_runs"


class BenchmarkSyntax:
    def parse(self, parser, name):
        attributes = {"name": StringAttr(unescaped_text(parser.take("string", "the name of the benchmark")))}
        arguments = parser.comma_list("(", ")", parser.argument)
        while not attributes.keys() >= {*NUMBERS[:2]} or parser.kind == "word" or parser.text == ",":
            if len(attributes) > 1:
                parser.expect(",")
            self._number(parser, attributes)
        operands = [parser.resolve(each.name, 0, each.at, each.type) for each in arguments]
        attributes.setdefault("num_warmup_runs", IntegerAttr(1, I32))
        region = parser.region(arguments, isolated=True)
        return Operation(name, operands, [CHAIN], attributes, [region])

    def _number(self, parser, attributes):
        at, key = parser.at, parser.take("word", "an attribute of the benchmark")
        if key not in NUMBERS or key in attributes:
            raise parser.error(f"expected one of {', '.join(each for each in NUMBERS if each not in attributes)}", at)
        parser.expect("=")
        place, text = parser.at, parser.take("number", "integer value")
        attributes[key] = parser.number_of(text, False, I32, place)

    def print(self, printer, operation):
        attributes = operation.attributes
        values = ", ".join(f"{printer.operand(value)} : {value.type}" for value in operation.operands)
        numbers = ", ".join(f"{key} = {attributes[key].value}" for key in NUMBERS)
        printer.write(f" {printer.attribute(attributes['name'])}({values}) {numbers} ")
        printer.shadow(operation.regions[0], operation.operands)
        printer.region(operation.regions[0], print_arguments=False)


SYNTAX = BenchmarkSyntax()
