"""Values that tell of their life, and the coordinates of a tutorial."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from heald.api import I32, Chain, HostType, Step


class Told:
    """A number that prints when it is made and when it is gone. TFRT moves a value once, into its register."""

    def __init__(self, number, host):
        self.number = number
        self._host = host
        host.print_line(f"constructed vt.value({number})")
        host.print_line(f"move constructed vt.value({number})")

    def __del__(self):
        self._host.print_line(f"destroyed vt.value({self.number})")


class Coordinate(NamedTuple):
    x: int
    y: int


Value = Annotated[Told, HostType("!vt.value", lambda value: isinstance(value, Told))]
Place = Annotated[Coordinate, HostType("!my.coordinate", lambda value: isinstance(value, Coordinate))]


def register(kernels):
    for function in (constant, add, print_value):
        syntax = "$value attr-dict" if function is constant else "operands attr-dict"
        kernels.kernel(f"vt.{function.__name__.removesuffix('_value')}", step=True, syntax=syntax)(function)
    kernels.kernel("tfrt_tutorial.create_coordinate", syntax="operands attr-dict")(create_coordinate)
    kernels.kernel("tfrt_tutorial.print_coordinate", step=True, syntax="operands attr-dict")(print_coordinate)


def constant(step: Step, *, value: I32) -> Value:
    return Told(value, step.host)


def add(step: Step, a: Value, b: Value) -> Value:
    return Told(a.number + b.number, step.host)


def print_value(step: Step, value: Value, chain: Chain) -> Chain:
    step.host.print_line(f"print vt_value({value.number})")


def create_coordinate(x: I32, y: I32) -> Place:
    return Coordinate(x, y)


def print_coordinate(step: Step, coordinate: Place, chain: Chain) -> Chain:
    step.host.print_line(f"({coordinate.x}, {coordinate.y})")
