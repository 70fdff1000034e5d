"""FusionRefusal: the reason why a link did not compute some calls at once, though a pack has a kernel for such ops."""

from __future__ import annotations

from ..support.records import NamedTuple

SHOWN_NODES = 3  # nodes that a text names


class FusionRefusal(NamedTuple):
    """A fusion or a pattern that was not used.

    `pattern`: its name with its pack's, such as `onednn.Product`.
    `node`: the node where it stopped: the one that stays apart, or the last one of those that the kernel declined.
    `nodes`: the nodes that it would have computed at once.
    """

    pattern: str
    node: str
    reason: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        left = len(self.nodes) - SHOWN_NODES
        names = ", ".join(self.nodes[:SHOWN_NODES]) + (f" and {left} more" if left > 0 else "")
        return f"fusion {self.pattern} stopped at '{self.node}': {self.reason} (nodes {names})"
