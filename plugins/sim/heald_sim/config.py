"""The config of simulated devices. heald imports this module at every start, so the module is light."""

from dataclasses import dataclass, field

LARGEST_DEVICE_COUNT = 1024


@dataclass(frozen=True)
class Config:
    """[plugin.sim].

    `ops`, `dtypes`: the ops and dtypes with kernels; None means all of the CPU plugin's. `faults`: planted faults, such
    as `"launch:7"`, the seventh launch, and `"copy:0.01"`, one copy in a hundred. Kinds are `allocate`, `copy`,
    `launch` and `lost`, a copy or launch that the device does not survive. `queue`: the operations that a stream
    holds; enqueueing more waits. `wraps`: the device can read host memory as its own. `largest_buffer`,
    `missing_types`, `copy_alignment`: the device's limits; a copy in spoils the bytes behind a tensor up to the
    alignment. `part_alignment`: bytes at whose multiples parts of buffers begin, 0 for a device without parts.
    `copy_streams`: copies in and out have streams of their own. Speeds are per second, times in seconds of
    the virtual clock.
    """

    devices: int = 1
    memory: int = 1 << 30
    ops: tuple[str, ...] | None = field(default=None, metadata={"found": True})
    dtypes: tuple[str, ...] | None = field(default=None, metadata={"found": True})
    faults: tuple[str, ...] = field(default=(), metadata={"found": True})
    seed: int = 0
    queue: int = 1024
    wraps: bool = False
    largest_buffer: int | None = None
    missing_types: tuple[str, ...] = field(default=(), metadata={"found": True})
    copy_alignment: int = 1
    part_alignment: int = 256
    copy_streams: bool = False
    flops: float = 1e13
    bandwidth: float = 1e12  # bytes, of the device's own memory
    link_bandwidth: float = 2e10  # bytes, between host and device
    peer_bandwidth: float = 1e11  # bytes, between devices
    launch_latency: float = 4e-6
    copy_latency: float = 8e-6
    enqueue: float = 2e-6  # the host's time for each enqueued item

    def __post_init__(self) -> None:
        if not 0 <= self.devices <= LARGEST_DEVICE_COUNT:
            raise ValueError(f"devices = {self.devices}: a number of devices up to {LARGEST_DEVICE_COUNT}")
