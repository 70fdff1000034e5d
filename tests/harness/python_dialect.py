"""Python as a dialect of kernel texts: a work-item is a generator that yields at barriers. An example."""

from heald_kernel_text.element_types import ELEMENTS
from heald_kernel_text.statements import Array, Assign, Barrier, Define, Exit, Indented, Loop, SameLine, Store, When
from heald_kernel_text.tree import fold

CALLS = {"GLOBAL_ID": "global_id[{}]", "GROUP_ID": "group_id[{}]", "LOCAL_ID": "local_id[{}]", "sizeof": "sizeof('{}')"}


class PythonText:
    """A reader of trees: each node is in parentheses of its own."""

    def word(self, name):
        return name

    def number(self, number):
        return f"({number.value!r})"

    def prefix(self, operator, operand):
        return f"(not {operand})" if operator == "!" else f"({operator}{operand})"

    def operation(self, operator, left, right):
        return f"operate({operator!r}, {left}, {right})"

    def choice(self, condition, result, otherwise):
        return f"({result} if {condition} else {otherwise})"

    def conversion(self, type_name, operand):
        return f"convert({type_name!r}, {operand})"

    def call(self, function, arguments):
        return CALLS.get(function, f"FUNCTIONS[{function!r}]({{}})").format(", ".join(arguments))

    def element(self, array, index):
        return f"{array}[{index}]"

    def load(self, dtype, buffer, index):
        return f"convert({ELEMENTS[dtype].register_type!r}, {buffer}[{index}])"

    def group(self, operand):
        return operand


def expression(tree):
    return fold(tree, PythonText())


def write_lines(body):
    for statement in body:
        match statement:
            case Define(kind, values):
                yield from (f"{name} = convert({kind!r}, {expression(value)})" for name, value in values.items())
            case Array(_, name, length, shared):
                yield f"{name} = shared.setdefault({name!r}, [0] * {length})" if shared else f"{name} = [0] * {length}"
            case Assign(variable, value, operator):
                yield f"{expression(variable)} {operator}= {expression(value)}"
            case Store(_, buffer, index, value):
                yield f"{buffer}[{expression(index)}] = {expression(value)}"
            case When(condition, then):
                yield from (f"if {expression(condition)}:", *(f"  {line}" for line in write_lines(then)))
            case Loop(_, steps, condition, turn):
                yield from (f"{step.name} = {expression(step.start)}" for step in steps)
                yield from (f"while {expression(condition)}:", *(f"  {line}" for line in write_lines(turn)))
                yield from (f"  {s.name} = operate({s.operator!r}, {s.name}, {expression(s.by)})" for s in steps)
            case SameLine(same) | Indented(same):
                yield from write_lines(same)
            case Exit() | Barrier():
                yield "return" if isinstance(statement, Exit) else "yield"


class Python:
    name, functions = "python", {}

    def source(self, parts):
        names = [*(pointer.name for pointer in (*parts.reads, *parts.writes)), *parts.sizes]
        head = f"def {parts.name}(global_id, local_id, group_id, shared, {', '.join(names)}):"
        return "\n".join([head, *(f"  {line}" for line in (*write_lines(parts.body), "if 0: yield"))])
