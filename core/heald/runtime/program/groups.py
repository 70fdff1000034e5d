"""Groups: calls of a function that a compiler may take at once, as a function of their own and one call of it."""

# The theory of groups
#
# `outline` moves the calls of a group into a body, a function of the program, and writes one call of `heald.group` in
# their place. `splice` puts the calls of all bodies back. A link splices first. So inference, folding and the binding
# of kernels see the function as it was lowered, whether a compiler takes the group or not.
#
# Invariants
# - A group is convex: no path of values or control edges leaves it and returns. `escape` finds such a path.
# - All values that cross the border of a group are arguments and results of its body, chains of control edges included.
#   So control edges survive: the calls of a body keep theirs.
# - A body has calls of ops on one device. Constants, copies and host kernels stay outside.
# - Outlined groups are single calls, so the convexity of a further group counts paths through them. Two groups never
#   wait for each other.
# - A part of a convex group without dropped calls is convex. So a specialised function can be outlined again.

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...errors import InvalidArgument
from ..support.records import NamedTuple
from .host_program import GROUP, HOST, RUNTIME_CODES, Call, ProgramFunction, RegisterType, meta_of


class Group(NamedTuple):
    """The calls of a body in a spliced function.

    `registers`: all registers that the calls fill; `stream`: the stream of their device.
    """

    compiler: str
    name: str
    function: str
    registers: frozenset[int]
    stream: int


class GroupOutcome(NamedTuple):
    """The fate of a group in one link. `refusal`: the reason why its calls are linked in place; "" for a kernel.

    `asks_in_runs`: the compiler is asked in runs, when the shapes are known.
    """

    compiler: str
    name: str
    nodes: tuple[str, ...]
    refusal: str
    asks_in_runs: bool = False

    def __str__(self) -> str:
        count = f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        if self.refusal:
            return f"compiler {self.compiler} leaves {self.name} ({count}) to the kernels: {self.refusal}"
        when = ", and is asked in runs, once for each combination of shapes" if self.asks_in_runs else ""
        return f"compiler {self.compiler} does {count} in 1 call, {self.name}{when}"


def is_groupable(call: Call) -> bool:
    """True for a call of an op's kernel, which a group may have."""
    return call.stream != HOST and call.code not in RUNTIME_CODES


def escape(function: ProgramFunction, nodes: Collection[str]) -> list[str]:
    """Return the nodes of a path that leaves a group and returns to it; an empty list for a convex group."""
    source: dict[int, tuple[str, int | None]] = {}  # register behind the group -> its node, the register before it
    for call in function.kernels:
        is_member = call.node in nodes and is_groupable(call)
        before = next((r for r in call.needs if r in source and (not is_member or source[r][1] is not None)), None)
        if is_member and before is not None:
            return [*_path_to(before, source), call.node]
        if is_member or before is not None:
            name = call.attrs["group"] if call.code == GROUP else call.node or call.code
            source.update(dict.fromkeys(call.gives, (name, before)))
    return []


def _path_to(register: int | None, source: Mapping[int, tuple[str, int | None]]) -> list[str]:
    path: list[str] = []
    while register is not None:
        node, register = source[register]
        path.append(node)
    return path[::-1]


def split(function: ProgramFunction, nodes: Collection[str]) -> list[tuple[str, ...]]:
    """Return these nodes as convex groups, which never wait for each other.

    A call's phase is the number of times that a path to it has left the chosen nodes and returned. Connected nodes of
    one phase form a group: a path that leaves it comes back in a later phase.
    """
    phase: dict[int, int] = {}  # by register; of values from other calls plus one half step, as 2 * phase + 1
    home: dict[int, int] = {}  # register of a chosen node -> the number of its group
    members: list[list[str]] = []
    joined: list[int] = []  # number of a group -> the number of the group that it became part of
    for call in function.kernels:
        levels = [phase[r] for r in call.needs if r in phase]
        if call.node not in nodes or not is_groupable(call):
            level = max(levels, default=-1)
            phase.update(dict.fromkeys(call.gives, level | 1 if level >= 0 else -1))
            continue
        level = max((entry + 1 if entry % 2 else entry for entry in levels), default=0)
        number = len(members)
        members.append([call.node])
        joined.append(number)
        for register in call.needs:
            if register in home and phase[register] == level:
                number = _join(joined, members, _root(joined, home[register]), _root(joined, number))
        phase.update(dict.fromkeys(call.gives, level))
        home.update(dict.fromkeys(call.gives, number))
    return [tuple(group) for number, group in enumerate(members) if joined[number] == number]


def _root(joined: list[int], number: int) -> int:
    while joined[number] != number:
        joined[number] = number = joined[joined[number]]
    return number


def _join(joined: list[int], members: list[list[str]], first: int, second: int) -> int:
    if first != second:
        joined[second] = first
        members[first] += members[second]
    return first


def outline(
    function: ProgramFunction, nodes: Collection[str], compiler: str, group: str, body_name: str
) -> tuple[ProgramFunction, ProgramFunction]:
    """Return the function with one call in the place of a convex group of one device, and the group's body."""
    members = [call for call in function.kernels if call.node in nodes and is_groupable(call)]
    inside = {register for call in members for register in call.gives}
    taken = tuple(dict.fromkeys(r for call in members for r in call.needs if r not in inside))
    others = [call for call in function.kernels if call.node not in nodes or not is_groupable(call)]
    read = {r for call in others for r in call.needs} | {*function.results, *function.targets}
    given = tuple(sorted(inside & read))
    last = members[-1]
    call = Call(GROUP, taken, given, {"compiler": compiler, "group": group}, last.stream, last.node, (body_name,),
                location=last.location)
    return (function._replace(kernels=in_place_of(function.kernels, members, call)),
            _body(function, members, taken, given, body_name))


def in_place_of(calls: Sequence[Call], members: Sequence[Call], call: Call) -> tuple[Call, ...]:
    """Return the calls with one call in the place of a convex group: behind all that it needs, before its consumers."""
    member_ids = {id(member) for member in members}
    behind = {register for member in members for register in member.gives}
    before, after, left = list[Call](), list[Call](), len(members)
    for number, other in enumerate(calls):
        if id(other) in member_ids:
            left -= 1
        elif behind.isdisjoint(other.needs):
            before.append(other)
        else:
            behind.update(other.gives)
            after.append(other)
        if not left:
            return (*before, call, *after, *calls[number + 1 :])
    raise AssertionError("a member is no call of the function")


def _body(
    function: ProgramFunction, members: Sequence[Call], taken: Sequence[int], given: Sequence[int], name: str
) -> ProgramFunction:
    order = (*taken, *(register for call in members for register in call.gives))
    number = {register: index for index, register in enumerate(order)}
    names = tuple(f"arg{index}" for index in range(len(taken)))
    types = tuple(function.register_types[register] for register in order)
    kernels = tuple(_renumbered(call, number) for call in members)
    return ProgramFunction(name, names, types, kernels, tuple(number[r] for r in given), location=members[-1].location,
                           is_compiled=function.is_compiled)


def _renumbered(call: Call, number: Mapping[int, int]) -> Call:
    return call._replace(
        args=tuple(number[r] for r in call.args), results=tuple(number[r] for r in call.results),
        after=tuple(number[r] for r in call.after), chain=None if call.chain is None else number[call.chain])


def splice(
    function: ProgramFunction, functions: Mapping[str, ProgramFunction]
) -> tuple[ProgramFunction, tuple[Group, ...]]:
    """Return the function with the calls of its groups in place, and the groups. It has no calls of `heald.group`.

    Raises InvalidArgument for a call that names no compiler, and for a body that is no group or does not fit its call.
    """
    if not any(call.code == GROUP for call in function.kernels):
        return function, ()
    types = list(function.register_types)
    kernels: list[Call] = []
    groups: list[Group] = []
    nodes = {call.node for call in function.kernels if is_groupable(call)}
    for call in function.kernels:
        if call.code != GROUP:
            kernels.append(call)
            continue
        body = functions[call.functions[0]] if len(call.functions) == 1 else None
        if body is None:
            raise _misfit(call, f"names {len(call.functions)} functions, expected one")
        _check_group(call, body, types)
        number = dict(zip(range(len(body.arg_names)), call.args, strict=True))
        number |= dict(zip(body.results, call.results, strict=True))
        for register in range(len(body.register_types)):
            if register not in number:
                number[register] = len(types)
                types.append(body.register_types[register])
        members = [_renumbered(member, number)._replace(node=_own_node(member, body.name, nodes))
                   for member in body.kernels]
        kernels += members
        groups.append(Group(call.attrs["compiler"], call.attrs["group"], body.name,
                            frozenset(r for member in members for r in member.gives), call.stream))
    return function._replace(kernels=tuple(kernels), register_types=tuple(types)), tuple(groups)


def _check_group(call: Call, body: ProgramFunction, types: Sequence[RegisterType]) -> None:
    """Raises InvalidArgument for a body that does not fit its call."""
    if call.after or call.chain is not None:
        raise _misfit(call, "has control edges", "chains are arguments and results of a group")
    for name in ("compiler", "group"):
        if not isinstance(call.attrs.get(name), str):
            raise _misfit(call, f"has {call.attrs.get(name)!r} as attribute '{name}', expected a text")
    for member in body.kernels:
        if not is_groupable(member) or member.stream != call.stream or member.functions:
            raise _misfit(call, f"names the function '{body.name}', which has the call {member.code}",
                          "a group has calls of ops on one device")
    if not set(body.results).isdisjoint(range(len(body.arg_names))) or len(set(body.results)) < len(body.results):
        raise _misfit(call, f"names the function '{body.name}', which returns an argument, or one value twice")
    stated = [types[r] for r in call.args], [types[r] for r in call.results]
    own = [*body.arg_types], [body.register_types[r] for r in body.results]
    for what, of_call, of_body in zip(("arguments", "results"), stated, own, strict=True):
        if list(map(_kind, of_call)) != list(map(_kind, of_body)):
            raise _misfit(call, f"has {what} of the types {', '.join(map(_kind, of_call))}, the function "
                                f"'{body.name}' has {', '.join(map(_kind, of_body))}")


def _own_node(call: Call, body: str, nodes: set[str]) -> str:
    """Return the call's node, after the name of its body where the function has this node: kernels keep state by node.
    """
    node = call.node
    while node in nodes:
        node = f"{body}/{node}"
    nodes.add(node)
    return node


def _kind(register_type: RegisterType) -> str:
    return register_type if isinstance(register_type, str) else meta_of(register_type).dtype.name


def _misfit(call: Call, what: str, hint: str | None = None) -> InvalidArgument:
    return InvalidArgument(f"the call of {GROUP} {what}", node=call.node or None, location=call.location, hint=hint)
