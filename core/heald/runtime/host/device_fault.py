"""Device fault: the one place where an exception of a device's own code becomes a typed error with its owner."""

from __future__ import annotations

from typing import Any

from ...errors import HealdError, describe_exception
from ..contract.device import Device
from ..support.fault_place import method_of, with_place
from ..support.kernel_errors import as_plugin_error
from ..support.remedy import device_remedy, work_remedy


def device_fault(
    error: BaseException, device: Device | None, name: str, plugin: str, *, is_of_step: bool = False
) -> HealdError:
    """Return the typed error for an exception of a device: it names device, plugin and, where known, the method.

    An error of heald stays itself, for the device means it for the user.

    `is_of_step`: a step ran. A wait then raises the error of work that was enqueued for an earlier node.
    """
    method = None if device is None else method_of(error, device)
    what = f"{method} of device {name}" if method is not None else f"device {name}"
    typed = as_plugin_error(error, f"{what} (plugin {plugin})")
    if typed is not error:
        typed.message = with_place(typed.message, error, type(device).__module__)
        typed.hint = (work_remedy if is_of_step and method == "synchronize" else device_remedy)(plugin)
    return typed.at(device=name, plugin=plugin, method=method)


def scan_fault(error: BaseException, device_type: str, plugin: str, scan: Any) -> HealdError:
    """Return the typed error for an exception of a plugin's scan. An error of heald stays itself."""
    typed = as_plugin_error(error, f"scan of {device_type} (plugin {plugin})")
    if typed is not error:
        module = scan.partition(":")[0] if isinstance(scan, str) else getattr(scan, "__module__", "")
        typed.message = with_place(f"scan of plugin {plugin} raised {describe_exception(error)}", error, module)
        typed.hint = device_remedy(plugin)
    return typed.at(plugin=plugin)
