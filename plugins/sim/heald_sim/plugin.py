"""The plugin of simulated devices. heald imports this module at every start, so the module is light."""

from heald.api import DeviceRegistrar, Kernels, hookimpl

from .config import Config

HEALD_API = (1, 4)
LOWEST_PRIORITY = -100  # below every real device: placement uses SIM on explicit request only


@hookimpl
def heald_devices(registry: DeviceRegistrar, config: Config) -> None:
    def kernels(to: Kernels) -> None:
        from .kernels import register_kernels

        register_kernels(to, config)

    registry.device(type="SIM", scan="heald_sim.device:scan", kernels=kernels, priority=LOWEST_PRIORITY)
