"""Cost, the last rule of placement: moves free nodes to another device where they are cheaper there.

Two kinds of nodes may move, each for the sum of its kernels' times and of the transfers that its place causes.

- A node that returns integers only, and fewer bytes than it takes, such as a shape or an index, and an Identity: to the
  one device that makes its inputs. TensorFlow's placer has this rule for ops that read metadata only.
- An island: connected nodes on one device, all of whose values come from and go to the memory of one other device. At
  least one node in that memory cannot move itself. TensorFlow's rule for generators, nodes without inputs, is a case.

Larger sets than `LARGEST_ISLAND_NODES` are work for the device that comes first, and nodes with values of unknown rank
have no cost: both stay. Shapes are inferred when the first node of these kinds is found.

Values that depend on constants alone are computed before runs. They cost nothing, and connect no nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ...runtime.contract.device_cost import DeviceCost
from ...runtime.contract.kernel import KernelDef
from ...runtime.contract.placement import Assignment
from ...runtime.contract.structural import CONST, IDENTITY
from ...runtime.support.records import NamedTuple
from ..graph.traversal import DisjointSets
from .host_integers import INTEGER_KINDS
from .node_cost import NodeCosts
from .prune import Tensor
from .resolve import Resolved

LARGEST_ISLAND_NODES = 100  # of an island; pricing a node takes about as long as placing it
HOST = ""  # the host's memory
Serves = Callable[[str, str], KernelDef | None]  # (node, device): the kernel that would serve the node there


class Price(NamedTuple):
    """Seconds of kernels, and of transfers between memories."""

    work: float
    transfers: float

    @property
    def total(self) -> float:
        return self.work + self.transfers


class CostRule:
    """The nodes of a graph with their devices, while free nodes move.

    `figures`: The figures of devices. Devices without figures have no entry; no node moves to or from them.
    `on_host`: The devices that work on host memory.
    `serves`: Returns the kernel that a node would have on a device, or None.
    `costs`: Returns the costs of nodes.
    """

    def __init__(
        self, rows: Mapping[str, Assignment], entries: Mapping[str, Resolved], figures: Mapping[str, DeviceCost],
        on_host: Collection[str], serves: Serves, costs: Callable[[], NodeCosts],
    ) -> None:
        self._rows, self._entries = rows, entries
        self._figures, self._on_host = figures, on_host
        self._serves, self._make_costs = serves, costs
        self._constants = _constant_nodes(entries)
        self._counts: dict[Tensor, Counter[str]] = {}  # of the values that prices were asked for
        self._mobile: set[str] = set()  # nodes that are no reason for others to move to their device

    def move_to_cheaper(self, free: Iterable[str], neutral: Collection[str]) -> None:
        """Move nodes of `free`. `neutral`: Nodes that are no reason for others to move to their device."""
        movable = [name for name in free if self._is_movable(name)]
        moved = {name for name in movable if self._move_to_inputs(name)}
        left = [name for name in movable if name not in moved]
        self._mobile = {*left, *neutral}
        for island in self._islands(left):
            target = self._surrounding_device(island) if len(island) <= LARGEST_ISLAND_NODES else None
            if target is not None:
                self._move_if_cheaper(island, target)

    @cached_property
    def _costs(self) -> NodeCosts:
        return self._make_costs()

    @cached_property
    def _readers(self) -> Mapping[Tensor, Sequence[tuple[str, str]]]:
        return _readers(self._entries)

    def _is_movable(self, name: str) -> bool:
        return (self._rows[name].device in self._figures and name not in self._constants
                and all(source in self._entries for source, _ in self._entries[name].inputs))

    def _may_follow_inputs(self, name: str) -> bool:
        """True for an Identity, and for a node that returns fewer bytes than it takes, all of them integers."""
        entry = self._entries[name]
        if entry.op.name == IDENTITY:
            return True
        if any(tensor.dtype.kind not in INTEGER_KINDS for tensor in entry.output_tensors):
            return False
        inputs, outputs = self._inputs(name), self._outputs(name)
        return (all(map(self._costs.is_known, (*inputs, *outputs)))
                and sum(map(self._costs.nbytes, outputs)) < sum(map(self._costs.nbytes, inputs)))

    def _move_to_inputs(self, name: str) -> bool:
        """Move a node to the one other device that makes its inputs, if that is cheaper. Returns True when it moved."""
        makers = {str(self._rows[source].device) for source, _ in self._inputs(name)}
        if len(makers) != 1:
            return False
        target, = makers
        crosses = self._memory(target) != self._memory(self._rows[name].device)
        return (crosses and target in self._figures and self._may_follow_inputs(name)
                and self._move_if_cheaper([name], target))

    def _islands(self, names: Sequence[str]) -> list[list[str]]:
        """Return the nodes in sets whose members are on one device and have values of each other."""
        sets, members = DisjointSets(), set(names)
        for name in names:
            for source, _ in self._inputs(name):
                if source in members and self._rows[source].device == self._rows[name].device:
                    sets.join(name, source)
        islands: dict[str, list[str]] = {}
        for name in names:
            islands.setdefault(sets.root(name), []).append(name)
        return [*islands.values()]

    def _surrounding_device(self, island: Sequence[str]) -> str | None:
        """Return the device of the first node around these nodes that cannot join them, if all nodes around them use
        one other memory."""
        device = str(self._rows[island[0]].device)
        memory = self._memory(device)
        inside, memories, anchors = set(island), set[str](), list[str]()
        for name in island:
            memories.update(self._result_memory(source) for source, _ in self._inputs(name) if source not in inside)
            neighbours = [source for source, _ in self._inputs(name)]
            for tensor in self._outputs(name):
                outer = [reading for reading in self._readers.get(tensor, ()) if reading[0] not in inside]
                memories.update(self._memory_of_argument(*reading) for reading in outer)
                neighbours += [reader for reader, _ in outer]
            if self._is_result(name):
                memories.add(HOST)
            anchors += [str(self._rows[other].device) for other in neighbours if self._is_anchor(other, device)]
        if len(memories) != 1 or memory in memories:
            return None
        return next((device for device in anchors if self._memory(device) in memories), None)

    def _is_anchor(self, name: str, device: str) -> bool:
        """True for a node that has to be where it is: it may not move, or has no kernel on the device."""
        is_free = name in self._mobile
        return self._rows[name].device in self._figures and (not is_free or self._serves(name, device) is None)

    def _move_if_cheaper(self, names: Sequence[str], target: str) -> bool:
        """Move the nodes to the device if they are cheaper there, and note the figures. Returns True when they
        moved."""
        kernels = {name: kernel for name in names if (kernel := self._serves(name, target)) is not None}
        if len(kernels) < len(names):
            return False
        touched = (tensor for name in names for tensor in (*self._entries[name].inputs, *self._outputs(name)))
        unknown = next((tensor for tensor in touched if not self._costs.is_known(tensor)), None)
        if unknown is not None:
            self._append_to_reasons(names, f"no cost, since the rank of '{unknown[0]}:{unknown[1]}' is unknown")
            return False
        device = str(self._rows[names[0]].device)
        now = {name: kernel for name in names if (kernel := self._rows[name].kernel) is not None}
        here, there = self._price_on_device(now, device), self._price_on_device(kernels, target)
        staying, moving = _price_text(here, device), _price_text(there, target)
        count = f"{len(names)} node{'s' if len(names) > 1 else ''}"
        measured = self._measured_times_text(names, device, target)
        if there.total >= here.total:
            self._append_to_reasons(names, f"cost: {count} at {staying} instead of {moving}{measured}")
            return False
        self._count_reads(names, -1)
        for name, kernel in kernels.items():
            row = self._rows[name]
            row.device, row.kernel = target, kernel
            row.reason = f"cost: {count} at {moving} instead of {staying}{measured}"
        self._count_reads(names, 1)
        return True

    def _measured_times_text(self, names: Sequence[str], *devices: str) -> str:
        """Return the text that tells how many of the kernels' times are of the statistics."""
        count = sum((name, device) in self._costs.statistics for name in names for device in devices)
        return f"; {count} of {len(devices) * len(names)} kernel times are measured" if count else ""

    def _append_to_reasons(self, names: Iterable[str], text: str) -> None:
        for name in names:
            self._rows[name].reason += f"; {text}"

    def _price_on_device(self, kernels: Mapping[str, KernelDef], device: str) -> Price:
        """Return the price of nodes on a device with these kernels. The transfers of other nodes count only as far as
        these nodes cause them."""
        work = sum(self._costs.node_seconds(name, device, self._figures[device])
                   for name, kernel in kernels.items() if not kernel.alias)
        now, then = dict[Tensor, Counter[str]](), dict[Tensor, set[str]]()
        for name in kernels:
            for tensor, argument in self._reads(name):
                now.setdefault(tensor, Counter())[self._memory_of_argument(name, argument)] += 1
                memory = HOST if argument in kernels[name].host else self._memory(device)
                then.setdefault(tensor, set()).add(memory)
        transfers = 0.0
        for tensor in dict.fromkeys((*then, *(tensor for name in kernels for tensor in self._outputs(name)))):
            own_reads = now.get(tensor, Counter())
            others = {memory for memory, count in self._reading_memories(tensor).items() if count > own_reads[memory]}
            every = others | then.get(tensor, set())
            if tensor[0] in kernels:
                maker = HOST if kernels[tensor[0]].host_outputs else self._memory(device)
                transfers += self._transfer_seconds(tensor, maker, every)
            else:
                maker = self._result_memory(tensor[0])
                before = self._transfer_seconds(tensor, maker, others)
                transfers += self._transfer_seconds(tensor, maker, every) - before
        return Price(work, transfers)

    def _transfer_seconds(self, tensor: Tensor, maker: str, memories: Collection[str]) -> float:
        """Return the seconds to move a tensor from its maker's memory to other ones, each once, through the host's."""
        away = sorted({*memories} - {maker})
        crossed = [maker, *away] if away else []
        return sum(self._one_transfer_seconds(tensor, memory, maker) for memory in crossed if memory != HOST)

    def _one_transfer_seconds(self, tensor: Tensor, memory: str, maker: str) -> float:
        """Return the seconds between the host and a device's memory. The reader that waits is on the other side; a
        transfer to the client has the name of the node itself."""
        waiting = [tensor[0]]
        if self._costs.statistics and tensor in self._readers:
            waiting = [reader for reader, argument in self._readers[tensor]
                       if (self._memory_of_argument(reader, argument) == memory) == (memory != maker)]
        return self._costs.transfer_seconds(tensor, waiting, memory, self._figures.get(memory, DeviceCost()))

    def _memory(self, device: str | None) -> str:
        """Return the device whose memory has the values of nodes on a device, or HOST."""
        return HOST if not device or device in self._on_host else device

    def _result_memory(self, name: str) -> str:
        """Return the memory that has the results of a node."""
        row = self._rows[name]
        return HOST if row.kernel is not None and row.kernel.host_outputs else self._memory(row.device)

    def _memory_of_argument(self, name: str, argument: str) -> str:
        """Return the memory in which a node reads an argument."""
        row = self._rows[name]
        return HOST if row.kernel is None or argument in row.kernel.host else self._memory(row.device)

    def _reading_memories(self, tensor: Tensor) -> Counter[str]:
        """Return the memories in which a value is read, with the number of readers. The client reads results."""
        if tensor not in self._counts:
            places = [self._memory_of_argument(*reading) for reading in self._readers.get(tensor, ())]
            self._counts[tensor] = Counter([HOST] if self._is_result(tensor[0]) else places)
        return self._counts[tensor]

    def _count_reads(self, names: Iterable[str], number: int) -> None:
        for name in names:
            for tensor, argument in self._reads(name):
                self._reading_memories(tensor)[self._memory_of_argument(name, argument)] += number

    def _is_result(self, name: str) -> bool:
        return not any(tensor in self._readers for tensor in self._outputs(name))

    def _reads(self, name: str) -> Iterator[tuple[Tensor, str]]:
        """Yield the inputs of a node that runs compute, each with its argument's name."""
        entry = self._entries[name]
        for tensor, declared in zip(entry.inputs, entry.input_tensors, strict=True):
            if tensor[0] not in self._constants:
                yield tensor, declared.arg

    def _inputs(self, name: str) -> list[Tensor]:
        return [tensor for tensor, _ in self._reads(name)]

    def _outputs(self, name: str) -> list[Tensor]:
        return [(name, index) for index in range(len(self._entries[name].output_tensors))]


def _readers(entries: Mapping[str, Resolved]) -> dict[Tensor, list[tuple[str, str]]]:
    """Return for each value the nodes that read it, with the names of their arguments."""
    readers: dict[Tensor, list[tuple[str, str]]] = {}
    for name, entry in entries.items():
        for tensor, declared in zip(entry.inputs, entry.input_tensors, strict=True):
            readers.setdefault(tensor, []).append((name, declared.arg))
    return readers


def _constant_nodes(entries: Mapping[str, Resolved]) -> set[str]:
    """Return the constants, and the stateless nodes all of whose inputs are among the returned nodes."""
    ready = [name for name, entry in entries.items() if entry.op.name == CONST]
    users: dict[str, list[str]] = {}
    missing: dict[str, int] = {}
    for name, entry in entries.items():
        missing[name] = len(entry.inputs)
        for source, _ in entry.inputs:
            users.setdefault(source, []).append(name)
    constants = set(ready)
    while ready:
        for user in users.get(ready.pop(), ()):
            missing[user] -= 1
            if not missing[user] and not entries[user].op.stateful:
                constants.add(user)
                ready.append(user)
    return constants


def _price_text(price: Price, device: str) -> str:
    transfers = f" and {_seconds_text(price.transfers)} of transfers" if price.transfers else ""
    return f"{_seconds_text(price.work)} on {device}{transfers}"


def _seconds_text(seconds: float) -> str:
    for unit, length in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
