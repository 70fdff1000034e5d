"""Random texts of a graph that calls one function whose control flow has regions, over float32 scalars.

`random_region_text(seed)` returns the same text for the same seed. Loops end after at most three iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

FLOAT, BOOL, INT = "tensor<*xf32>", "tensor<*xi1>", "tensor<*xi32>"
OPS = (("Neg", 1), ("Abs", 1), ("Square", 1), ("AddV2", 2), ("Mul", 2), ("Sub", 2), ("Maximum", 2))
GRAPH = f"""tfg.graph #tf_type.version<producer = 1395, min_consumer = 0> {{
  %x, %ctl = Placeholder name("x") {{dtype = f32, shape = #tf_type.shape<>}} : () -> ({FLOAT})
  %b, %ctl_0 = Placeholder name("b") {{dtype = i1, shape = #tf_type.shape<>}} : () -> ({BOOL})
  %i, %ctl_1 = Placeholder name("i") {{dtype = i32, shape = #tf_type.shape<>}} : () -> ({INT})
  %y:2, %ctl_2 = StatefulPartitionedCall(%x, %b, %i) name("y") {{Tin = [f32, i1, i32], Tout = [f32, f32], \
f = #tf_type.func<@f, {{}}>, config = "", config_proto = "", executor_type = ""}} \
: ({FLOAT}, {BOOL}, {INT}) -> ({FLOAT}, {FLOAT})
}}
tfg.func @f(%x: {FLOAT} {{tfg.name = "x"}}, %b: {BOOL} {{tfg.name = "b"}}, %i: {INT} {{tfg.name = "i"}})
    -> ({FLOAT} {{tfg.name = "r"}}, {FLOAT} {{tfg.name = "s"}}) {{
"""


def random_region_text(seed: int, *, is_run: bool = True) -> str:
    """The text. `is_run`: True for a text that the runtime can run."""
    maker = _Maker(Random(f"regions {seed}"), is_run)  # noqa: S311 - no secrets: the seed makes the text
    scope = _Scope({FLOAT: ["%x"], BOOL: ["%b"], INT: ["%i"]}, [])
    maker.statements(scope, 3, 9)
    results = [maker.value(scope, FLOAT), maker.value(scope, FLOAT)]
    tokens = f' [{maker.rng.choice(scope.controls)} {{tfg.name = "done"}}]' if maker.rng.random() < 0.2 else ""
    return f"{GRAPH}{''.join(maker.lines)}  return({', '.join(results)}){tokens} : {FLOAT}, {FLOAT}\n}}\n"


class _Scope:
    """Values that a statement may use, by type, and control tokens of nodes."""

    def __init__(self, values: dict[str, list[str]], controls: list[str]) -> None:
        self.values, self.controls = values, controls

    def inner(self) -> _Scope:
        """The scope of a region. Its nodes wait for no node outside: heald moves such an edge to the region's owner."""
        return _Scope({of: [*values] for of, values in self.values.items()}, [])


class _Maker:
    def __init__(self, rng: Random, is_run: bool) -> None:
        self.rng, self.is_run = rng, is_run
        self.lines: list[str] = []
        self.count = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    def value(self, scope: _Scope, of: str) -> str:
        values = scope.values[of]
        return values[-1 - min(self.rng.randrange(len(values)) for _ in range(2))]

    def statements(self, scope: _Scope, depth: int, most: int) -> None:
        for _ in range(self.rng.randrange(1, most)):
            kinds: list[tuple[int, Callable[[_Scope, int], None]]] = [(10, self.node), (2, self.constant),
                                                                      (2, self.comparison)]
            if depth:
                kinds += [(3, self.conditional), (1, self.case), (2, self.loop)]
                kinds += [] if self.is_run else [(1, self.count_loop)]
            weights, makers = zip(*kinds, strict=True)
            self.rng.choices(makers, weights)[0](scope, depth)

    def define(self, scope: _Scope, of: str, op: str, operands: str, attributes: str, types: str) -> str:
        number = self.number()
        tokens = f" [{self.rng.choice(scope.controls)}]" if scope.controls and self.rng.random() < 0.12 else ""
        device = ' device("/device:CPU:0")' if self.rng.random() < 0.05 else ""
        shapes = "_output_shapes = [#tf_type.shape<>], " if self.rng.random() < 0.1 else ""
        self.lines.append(f'%v{number}, %c{number} = {op}{operands}{tokens}{device} name("n{number}") '
                          f"{{{shapes}{attributes}}} : ({types}) -> ({of})\n")
        scope.values[of].append(f"%v{number}")
        scope.controls.append(f"%c{number}")
        return f"%v{number}"

    def node(self, scope: _Scope, _: int) -> None:
        op, count = self.rng.choice(OPS)
        operands = [self.value(scope, FLOAT) for _ in range(count)]
        self.define(scope, FLOAT, op, f"({', '.join(operands)})", "T = f32", ", ".join([FLOAT] * count))

    def constant(self, scope: _Scope, _: int) -> None:
        value = self.rng.choice(("1.0", "0.5", "-2.0"))
        self.define(scope, FLOAT, "Const", "", f"dtype = f32, value = dense<{value}> : tensor<f32>", "")

    def comparison(self, scope: _Scope, _: int) -> None:
        operands = f"({self.value(scope, FLOAT)}, {self.value(scope, FLOAT)})"
        self.define(scope, BOOL, "Less", operands, "T = f32", f"{FLOAT}, {FLOAT}")

    def kind(self) -> str:
        return self.rng.choice(("", "", "Stateless"))

    def region(self, scope: _Scope, depth: int, end: Callable[[_Scope], str]) -> None:
        inner = scope.inner()
        self.statements(inner, depth - 1, 5)
        tokens = f" [{self.rng.choice(inner.controls)}]" if inner.controls and self.rng.random() < 0.1 else ""
        self.lines.append(end(inner).replace("[]", tokens))

    def yielded(self, scope: _Scope) -> str:
        return f"yield({self.value(scope, FLOAT)})[] : {FLOAT}\n"

    def finish(self, scope: _Scope, number: int, attributes: str, types: str) -> None:
        self.lines.append(f'}} {{_mlir_name = "n{number}"{attributes}}} : ({types}) -> ({FLOAT})\n')
        scope.values[FLOAT].append(f"%v{number}")
        scope.controls.append(f"%c{number}")

    def conditional(self, scope: _Scope, depth: int) -> None:
        number = self.number()
        self.lines.append(f"%v{number}, %c{number} = {self.kind()}IfRegion {self.value(scope, BOOL)} then {{\n")
        self.region(scope, depth, self.yielded)
        self.lines.append("} else {\n")
        self.region(scope, depth, self.yielded)
        attributes = (', then_attrs = {}, else_attrs = {}, '
                      f'then_region_attrs = #tfg.region_attrs<{{sym_name = "then{number}"}} [] [{{tfg.name = "r"}}]>, '
                      f'else_region_attrs = #tfg.region_attrs<{{sym_name = "else{number}"}} [] [{{tfg.name = "r"}}]>')
        self.finish(scope, number, attributes, BOOL)

    def case(self, scope: _Scope, depth: int) -> None:
        number, count = self.number(), self.rng.choice((1, 2, 3))
        self.lines.append(f"%v{number}, %c{number} = {self.kind()}CaseRegion {self.value(scope, INT)} {{\n")
        for index in range(count):
            if index:
                self.lines.append("}, {\n")
            self.region(scope, depth, self.yielded)
        attrs = ", ".join(["{}"] * count)
        regions = ", ".join(f'#tfg.region_attrs<{{sym_name = "case{number}_{i}"}} [] [{{tfg.name = "r"}}]>'
                            for i in range(count))
        self.finish(scope, number, f", branch_attrs = [{attrs}], region_attrs = [{regions}]", INT)

    def loop(self, scope: _Scope, depth: int) -> None:
        """A While over a counter, a value, and values that its body may return unchanged."""
        number, rng = self.number(), self.rng
        floats = rng.choice((1, 2, 3))
        self.lines.append(f'%z{number}, %d{number} = Const name("zero{number}") '
                          f"{{dtype = i32, value = dense<0> : tensor<i32>}} : () -> ({INT})\n"
                          f'%o{number}, %e{number} = Const name("one{number}") '
                          f"{{dtype = i32, value = dense<1> : tensor<i32>}} : () -> ({INT})\n"
                          f'%t{number}, %g{number} = Const name("limit{number}") '
                          f"{{dtype = i32, value = dense<{rng.choice((0, 2, 3))}> : tensor<i32>}} : () -> ({INT})\n")
        types = ", ".join([INT, *[FLOAT] * floats])
        initial = ", ".join([f"%z{number}", *(self.value(scope, FLOAT) for _ in range(floats))])
        results = f"%v{number}:{1 + floats}, %c{number}"
        self.lines.append(f"{results} = {self.kind()}WhileRegion({initial}) {{\n")
        heads = []
        for part in ("p", "q"):
            values = [f"%{part}{number}_{i}" for i in range(floats + 1)]
            shown = ", ".join([*(f"{value}: {INT if i == 0 else FLOAT}" for i, value in enumerate(values)),
                               *(f"{value}c: !tf_type.control" for value in values)])
            heads.append((values, f"^bb0({shown}):\n"))
        (values, head), (body_values, body_head) = heads
        inner = self.within(scope, values)
        self.lines.append(head)
        self.region(inner, 1, lambda _: "")
        self.lines.append(f'%l{number}, %h{number} = Less(%p{number}_0, %t{number}) name("less{number}") {{T = i32}} '
                          f": ({INT}, {INT}) -> ({BOOL})\n"
                          f"condition %l{number} : {BOOL} ({', '.join(values)}) : {types}\n}} do {{\n{body_head}")
        inner = self.within(scope, body_values)
        self.lines.append(f'%a{number}, %k{number} = AddV2(%q{number}_0, %o{number}) name("next{number}") {{T = i32}} '
                          f": ({INT}, {INT}) -> ({INT})\n")

        def end(body: _Scope) -> str:
            values = [value if rng.random() < 0.4 else self.value(body, FLOAT) for value in body_values[1:]]
            return f"yield({', '.join([f'%a{number}', *values])})[] : {types}\n"

        self.region(inner, depth, end)
        names = ", ".join(f'{{tfg.name = "{i}w{number}"}}' for i in "abcd"[:floats + 1])
        outputs = ", ".join(f'{{tfg.name = "{i}r{number}"}}' for i in "abcd"[:floats + 1])
        self.lines.append(
            f'}} {{_mlir_name = "n{number}", parallel_iterations = 10 : i64, body_attrs = {{}}, cond_attrs = {{}}, '
            f'cond_region_attrs = #tfg.region_attrs<{{sym_name = "cond{number}"}} [{names}] [{{tfg.name = "r"}}]>, '
            f'body_region_attrs = #tfg.region_attrs<{{sym_name = "body{number}"}} [{names}] [{outputs}]>}} '
            f": ({types}) -> ({types})\n")
        scope.values[FLOAT] += [f"%v{number}#{i + 1}" for i in range(floats)]
        scope.values[INT].append(f"%v{number}#0")
        scope.controls.append(f"%c{number}")

    def within(self, scope: _Scope, values: list[str]) -> _Scope:
        inner = scope.inner()
        inner.values[INT].append(values[0])
        inner.values[FLOAT] += values[1:]
        inner.controls += [f"{value}c" for value in values]
        return inner

    def count_loop(self, scope: _Scope, depth: int) -> None:
        """A For over one value."""
        number = self.number()
        bounds = [self.value(scope, INT) for _ in range(3)]
        self.lines.append(f"%v{number}, %c{number} = ForRegion({self.value(scope, FLOAT)}) from {bounds[0]} to "
                          f"{bounds[1]} by {bounds[2]} {{\n^bb0(%f{number}_0: {INT}, %f{number}_1: {FLOAT}, "
                          f"%f{number}_0c: !tf_type.control, %f{number}_1c: !tf_type.control):\n")
        inner = self.within(scope, [f"%f{number}_0", f"%f{number}_1"])
        self.region(inner, depth, lambda body: self.yielded(
            body) if self.rng.random() < 0.7 else f"yield(%f{number}_1)[] : {FLOAT}\n")
        names = f'{{tfg.name = "a{number}"}}, {{tfg.name = "b{number}"}}'
        attributes = (f', body_attrs = {{}}, region_attrs = #tfg.region_attrs<{{sym_name = "for{number}"}} [{names}] '
                      f'[{{tfg.name = "r{number}"}}]>')
        self.finish(scope, number, attributes, f"{INT}, {INT}, {INT}, {FLOAT}")
