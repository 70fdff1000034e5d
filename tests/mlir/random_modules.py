"""Random modules, made of operations that no dialect declares."""

from __future__ import annotations

from heald_mlir import attributes as a
from heald_mlir import types as t
from heald_mlir.floats import FORMATS
from heald_mlir.ir import Block, Operation, Region, Value
from hypothesis import strategies as st

words = st.from_regex(r"[a-z_][a-z0-9_$.]{0,6}", fullmatch=True).filter(lambda word: word not in ("loc", "func"))
texts = st.one_of(words, st.text(max_size=6).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
names = texts.filter(bool)  # of attributes
numbers = st.one_of(
    st.builds(t.IntegerType, st.sampled_from((1, 8, 16, 32, 64)), st.sampled_from(("", "s", "u"))),
    st.sampled_from([t.WORDS[name] for name in FORMATS]))
elements = st.one_of(numbers, st.builds(t.ComplexType, st.sampled_from((t.F32, t.F64))))
dimensions = st.one_of(st.none(), st.integers(0, 3))
shapes = st.one_of(st.none(), st.lists(dimensions, max_size=3).map(tuple))
plain_types = st.one_of(
    elements, st.just(t.INDEX), st.builds(t.ShapedType, st.just("tensor"), shapes, elements),
    st.builds(t.OpaqueType, words.filter(lambda word: "." not in word), st.sampled_from(
        ("chain", "a<b>", 'x<"s>", [1, {y}]>', "f<(i32) -> !z.w>"))))
types = st.recursive(plain_types, lambda inner: st.one_of(
    st.builds(t.TupleType, st.lists(inner, max_size=2).map(tuple)),
    st.builds(t.FunctionType, st.lists(inner, max_size=2).map(tuple), st.lists(inner, max_size=2).map(tuple))),
    max_leaves=4)


@st.composite
def values_of(draw: st.DrawFn, of: t.Type) -> object:
    """An integer, or the bits of a float, or a pair of these."""
    if isinstance(of, t.ComplexType):
        return draw(values_of(of.element)), draw(values_of(of.element))
    if isinstance(of, t.IntegerType):
        if of == t.I1:
            return draw(st.integers(0, 1))
        least = 0 if of.sign == "u" else -(1 << of.width - 1)
        return draw(st.integers(least, least + (1 << of.width) - 1))
    assert isinstance(of, t.NamedType)
    return draw(st.integers(0, (1 << FORMATS[of.name].width) - 1))


@st.composite
def dense(draw: st.DrawFn) -> a.DenseAttr:
    element = draw(elements)
    shape = tuple(draw(st.lists(st.integers(0, 12), max_size=2)))
    count = 1
    for dim in shape:
        count *= dim
    size = draw(st.sampled_from((1, count))) if count else 0
    values = draw(st.lists(values_of(element), min_size=size, max_size=size))
    if len(values) > 1 and values.count(values[0]) == len(values):
        values = values[:1]  # a splat
    return a.DenseAttr(t.ShapedType("tensor", shape, element), tuple(values))


locations = st.recursive(
    st.one_of(st.just(a.UNKNOWN), st.builds(a.FileLineColLoc, texts, st.integers(0, 99), st.integers(0, 99))),
    lambda inner: st.one_of(st.builds(a.NameLoc, texts, st.none()), st.builds(a.CallSiteLoc, inner, inner),
                            st.builds(a.FusedLoc, st.lists(inner, max_size=2).map(tuple))), max_leaves=3)
single = st.one_of(
    st.just(a.UNIT), st.builds(a.StringAttr, texts), st.builds(a.TypeAttr, types), dense(),
    st.builds(a.SymbolRefAttr, texts, st.lists(texts, max_size=2).map(tuple)),
    numbers.filter(lambda of: isinstance(of, t.IntegerType)).flatmap(
        lambda of: st.builds(a.IntegerAttr, values_of(of), st.just(of))),
    numbers.filter(lambda of: isinstance(of, t.NamedType)).flatmap(
        lambda of: st.builds(a.FloatAttr, values_of(of), st.just(of))),
    numbers.filter(lambda of: of == t.I1 or t.width_of(of) % 8 == 0).flatmap(lambda of: st.builds(
        a.DenseArrayAttr, st.just(of), st.lists(values_of(of), max_size=3).map(tuple))),
    st.builds(a.OpaqueAttr, words.filter(lambda word: "." not in word), st.sampled_from((".b", ".b<1, [2]>", '<"x">'))),
    locations)
attributes = st.recursive(single, lambda inner: st.one_of(
    st.lists(inner, max_size=3).map(lambda items: a.ArrayAttr(tuple(items))),
    st.dictionaries(names, inner, max_size=2).map(lambda items: a.DictionaryAttr(tuple(sorted(items.items()))))),
    max_leaves=5)


@st.composite
def operations(draw: st.DrawFn, visible: list[Value], blocks: list[Block], depth: int) -> Operation:
    operands = draw(st.lists(st.sampled_from(visible), max_size=3)) if visible else []
    regions = [draw(regions_with(visible, depth - 1)) for _ in range(draw(st.integers(0, 2 if depth else 0)))]
    successors = draw(st.lists(st.sampled_from(blocks), max_size=2)) if blocks else []
    return Operation(
        "test." + draw(words), operands, draw(st.lists(types, max_size=3)),
        draw(st.dictionaries(names, attributes, max_size=2)), regions, successors, draw(locations))


@st.composite
def regions_with(
    draw: st.DrawFn, visible: list[Value], depth: int, arguments: tuple[t.Type, ...] | None = None,
) -> Region:
    region = Region()
    region.blocks = [Block() for _ in range(draw(st.integers(1, 2)))]
    visible = [*visible]
    for index, block in enumerate(region.blocks):
        argument_types = arguments if arguments is not None and index == 0 else draw(st.lists(types, max_size=2))
        visible += [block.add_argument(of, draw(locations)) for of in argument_types]
        for _ in range(draw(st.integers(1, 2))):
            block.operations.append(draw(operations(visible, region.blocks[1:], depth)))
            visible += block.operations[-1].results
    return region


@st.composite
def functions(draw: st.DrawFn) -> Operation:
    inputs, results = (tuple(draw(st.lists(types, max_size=2))) for _ in range(2))
    attributes_of_function: dict[str, a.Attribute] = draw(st.dictionaries(words, attributes, max_size=1))
    function_type = a.TypeAttr(t.FunctionType(inputs, results))
    attributes_of_function |= {"sym_name": a.StringAttr(draw(texts)), "function_type": function_type}
    external = draw(st.booleans())
    if external:
        attributes_of_function["sym_visibility"] = a.StringAttr("private")
    region = Region() if external else draw(regions_with([], 2, inputs))
    return Operation("func.func", attributes=attributes_of_function, regions=[region], location=draw(locations))


@st.composite
def modules(draw: st.DrawFn, depth: int = 1) -> Operation:
    region = Region()
    region.blocks = [Block()]
    inner = st.one_of(functions(), operations([], [], 1), *([modules(depth - 1)] if depth else []))
    region.blocks[0].operations = draw(st.lists(inner, max_size=3))
    name = {"sym_name": a.StringAttr(draw(texts))} if draw(st.booleans()) else {}
    return Operation("builtin.module", attributes=name, regions=[region], location=draw(locations))
