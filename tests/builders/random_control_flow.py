"""Random programs over int32 scalars with the control flow of TensorFlow 1, drawn by hypothesis."""

from __future__ import annotations

from builders.control_flow_v1 import BOOL, INT, ControlFlowBuilder
from heald.runtime.contract.structural import ENTERS, EXITS, LOOP_COND, NEXT_ITERATIONS
from hypothesis import strategies as st

GONE = ENTERS | EXITS | NEXT_ITERATIONS | {LOOP_COND}


class RandomProgram:
    """Statements that hypothesis draws, over int32 scalars. `wild` programs also mix values of different branches."""

    def __init__(self, draw, *, wild):
        self.draw, self.wild = draw, wild
        self.build = ControlFlowBuilder()
        self.inputs = [self.build.add("Placeholder", dtype=INT, name=name) for name in "xy"]
        self.everywhere = list(self.inputs)  # in wild programs: tensors outside loops, in branches too

    def number(self, least, largest):
        return self.draw(st.integers(least, largest))

    def block(self, variables, depth, length):
        """Add statements. Returns the tensors that are known after them."""
        variables = list(variables)
        for _ in range(length - self.number(0, length - 1)):
            variables += self.statement(variables, depth)
        return variables

    def pick(self, variables):
        return variables[-1 - min(self.number(0, len(variables) - 1) for _ in range(2))]

    def statement(self, variables, depth):
        build = self.build
        kinds = ["Add", "Mul", "Log", "const"] + ["cond", "while"] * (depth > 0) + ["raw", "behind"] * self.wild
        kind = self.draw(st.sampled_from(kinds[::-1]))
        if kind == "const":
            return [build.const(self.number(0, 9))]
        if kind == "cond":
            return self.cond(variables, depth)
        if kind == "while":
            return self.loop(variables, depth)
        if kind == "raw":
            return self.raw()
        if kind == "behind":
            before = self.near()
            return [build.add("Identity", build.here(self.pick(variables)), controls=before)] if before else []
        count = 1 if kind == "Log" else 2
        return [build.op(kind, *(self.pick(variables) for _ in range(count)))]

    def cond(self, variables, depth):
        build = self.build
        predicate = build.op("Less", self.pick(variables), self.pick(variables))
        count = self.number(1, 2)

        def branch():
            inner = self.block(variables, depth - 1, 3)
            return [self.pick(inner) for _ in range(count)]

        return build.cond(predicate, branch, branch)

    def loop(self, variables, depth):
        build = self.build
        initial = [build.const(0), *(self.pick(variables) for _ in range(self.number(0, 2)))]
        limit = build.const(3 - self.number(0, 3))
        head = []

        def condition(*values):
            tested = values[0] if len(values) == 1 or self.number(0, 3) else build.op("Add", values[0], limit)
            tested = build.op("Log", tested) if not self.number(0, 3) else tested
            head.append(tested)
            return build.op("Less", tested, limit)

        def body(*values):
            counter = build.op("Add", values[0], build.const(1))
            shared = []
            if not self.number(0, 2):  # a value that the condition needs too
                shared = head if self.wild else [build.op("Add", head[0], values[0])]
            inner = self.block([*variables, *values, *shared], depth - 1, 3)
            if self.wild and not self.number(0, 3):
                inner += self.raw()
            return [counter, *(self.pick(inner) for _ in values[1:])]

        return build.while_loop(condition, body, initial)

    def near(self):
        """Nodes of the current context, or of branches in it, that a control edge may come from."""
        loop = self.loop_around(self.build.context)
        nearby = [name for name in self.build.nodes if self.loop_around(self.build.home[name]) is loop
                  and self.build.nodes[name].op not in NEXT_ITERATIONS | {"Switch"}]
        return [self.pick(nearby)] if nearby else []

    def raw(self):
        """A Merge, or another node, of any tensors inside the same loops."""
        build = self.build
        loop = self.loop_around(build.context)
        nearby = [name for name, node in build.nodes.items() if self.loop_around(build.home[name]) is loop
                  and node.op in ("Add", "Mul", "Log", "Const", "Merge", "Placeholder", "Switch")
                  and build.kind(name) is INT and node.attrs.get("dtype") is not BOOL]
        if not nearby:
            return []
        ports = [f"{name}{self.draw(st.sampled_from(['', ':1'])) if build.nodes[name].op == 'Switch' else ''}"
                 for name in (self.pick(nearby), self.pick(nearby))]
        op = self.draw(st.sampled_from(["Merge", "Add", "Mul"]))
        new_name = build.add(op, *ports, **({"N": 2} if op == "Merge" else {}))
        if op == "Merge" and self.number(0, 1):
            return [new_name, f"{new_name}:1"]
        return [new_name]

    def loop_around(self, context):
        while context.outer is not None and not context.is_loop:
            context = context.outer
        return context


def root_tensors(program):
    build = program.build
    return [(name, 0) for name, node in build.nodes.items()
            if program.loop_around(build.home[name]) is build.root and node.op not in GONE - EXITS
            and node.op != "Switch"]


@st.composite
def programs(draw, *, wild=False):
    program = RandomProgram(draw, wild=wild)
    variables = program.block(program.inputs, 3, 6)
    results = [variables[-1], *(program.pick(variables) for _ in range(program.number(0, 2)))]
    keep = [(name.partition(":")[0], int(":" in name)) for name in results]
    if wild:
        keep += [program.pick(root_tensors(program)) for _ in range(program.number(0, 2))]
    return program.build.graph(), [*dict.fromkeys(keep)]
