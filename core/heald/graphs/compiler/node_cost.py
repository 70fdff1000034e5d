"""NodeCosts: the work of a graph's nodes and the bytes of their values before the run, by op costs and by statistics.

A dimension of unknown length, such as a batch, counts as `UNKNOWN_LENGTH`. Values of unknown rank have no cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.contract.device_cost import DeviceCost
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.op_table import OpCost
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from .prune import Tensor
from .resolve import Resolved

UNKNOWN_LENGTH = 32
Statistics = Mapping[tuple[str, str], float]  # (node, device) -> seconds; NODE:copy for a transfer that NODE waits for


class NodeCosts:
    """The costs of the nodes of one graph.

    `facts`: the known facts about the outputs of each node.
    `statistics`: measured times, which replace the model's.
    """

    def __init__(
        self, entries: Mapping[str, Resolved], facts: Mapping[str, Sequence[ValueInfo]], ops: OpRegistry,
        statistics: Statistics,
    ) -> None:
        self.statistics = statistics
        self._entries, self._facts, self._ops = entries, facts, ops
        self._work: dict[str, OpCost] = {}

    def node_seconds(self, node: str, device: str, figures: DeviceCost) -> float:
        """Return the time of a node on a device."""
        measured = self.statistics.get((node, device))
        if measured is not None:
            return measured
        if node not in self._work:
            self._work[node] = self._work_of(self._entries[node])
        return figures.work(*self._work[node])

    def transfer_seconds(self, tensor: Tensor, readers: Sequence[str], device: str, figures: DeviceCost) -> float:
        """Return the time to move a tensor between the host and a device, for the first of `readers` that waits."""
        for reader in readers if self.statistics else ():
            measured = self.statistics.get((f"{reader}:copy", device))
            if measured is not None:
                return measured
        return figures.transfer(self.nbytes(tensor))

    def nbytes(self, tensor: Tensor) -> int:
        """Return the bytes of a tensor of known rank."""
        return _static(self._meta(tensor)).nbytes

    def is_known(self, tensor: Tensor) -> bool:
        """True when the rank of a tensor is known."""
        return self._meta(tensor).rank is not None

    def _work_of(self, entry: Resolved) -> OpCost:
        """Return the work by the op set, or one operation for each element of the results."""
        inputs = [_static(self._meta(source)) for source in entry.inputs]
        outputs = [_static(info.meta) for info in self._facts[entry.node.name]]
        cost = self._ops.cost(entry.op.name, entry.attrs, inputs, outputs)
        return cost or OpCost(sum(meta.size for meta in outputs), sum(meta.nbytes for meta in (*inputs, *outputs)))

    def _meta(self, tensor: Tensor) -> TensorMetadata:
        return self._facts[tensor[0]][tensor[1]].meta


def _static(meta: TensorMetadata) -> TensorMetadata:
    """Return the metadata with a length in place of each unknown one. The rank is known."""
    if meta.is_static:
        return meta
    return TensorMetadata(meta.dtype, tuple(UNKNOWN_LENGTH if dim is None else dim for dim in meta.shape or ()))
