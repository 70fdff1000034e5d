"""What the plugin brings. This module is imported whenever heald starts: it is light, and simulates nothing."""

from dataclasses import dataclass, field

from heald.api import DeviceRegistrar, Kernels, hookimpl

HEALD_API = (1, 0)
MOST_DEVICES = 1024
LAST = -100  # below every real device: a node comes here only when it, or the session, asks for SIM


@dataclass(frozen=True)
class Config:
    """[plugin.sim].

    `ops`, `dtypes`: what there are kernels for, none for all that the CPU plugin has. `faults`: calls that fail,
    `"launch:7"` the seventh, `"copy:0.01"` one in a hundred; of `allocate`, `copy`, `launch`, and `lost`, for a
    copy or launch that the device does not survive. `queue`: how many operations a stream holds; who enqueues more
    waits. `wraps`: it can read the host's memory as its own. Speeds are per second, times in seconds of the virtual
    clock.
    """

    devices: int = 1
    memory: int = 1 << 30
    ops: tuple[str, ...] | None = field(default=None, metadata={"found": True})
    dtypes: tuple[str, ...] | None = field(default=None, metadata={"found": True})
    faults: tuple[str, ...] = field(default=(), metadata={"found": True})
    seed: int = 0
    queue: int = 1024
    wraps: bool = False
    flops: float = 1e13
    bandwidth: float = 1e12  # bytes, of the device's own memory
    link_bandwidth: float = 2e10  # bytes, between host and device
    peer_bandwidth: float = 1e11  # bytes, between devices
    launch_latency: float = 4e-6
    copy_latency: float = 8e-6
    enqueue: float = 2e-6  # what the host takes to enqueue anything

    def __post_init__(self) -> None:
        if not 0 <= self.devices <= MOST_DEVICES:
            raise ValueError(f"devices = {self.devices}: a number of devices up to {MOST_DEVICES}")


@hookimpl
def heald_devices(registry: DeviceRegistrar, config: Config) -> None:
    def kernels(to: Kernels) -> None:
        from .kernels import register

        register(to, config)

    registry.device(type="SIM", scan="heald_sim.device:scan", kernels=kernels, priority=LAST)
