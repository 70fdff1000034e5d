"""heald devices and heald plugins: the devices and plugins of this machine, and their faults."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...runtime.support.install import install_hint
from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_listing

if TYPE_CHECKING:
    from ...runtime.discovery.plugin_record import PluginRecord
    from ...runtime.host.device_record import DeviceRecord
    from ...runtime.host.host import Host

NO_SUCH_OP = "it passes, but has kernels for ops that do not exist:"
LISTED_KERNELS = 3  # of unknown ops, in a reason
NO_KERNELS = "it only copies: no plugin has kernels for {type}"
NAME_KERNELS = "its plugin names them: registry.device(kernels=...)"
NONE_REGISTERED = "it only copies: plugin {plugins} names kernels for {type}, and registered none"
REGISTER_KERNELS = "the function that it names calls kernels.kernel(OP, ...)(bind) for each op"


def add_device_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these devices, such as CPU:0")
    parser.add_argument("--check", action="store_true",
                        help="open each device, wait behind copies and a kernel; status 1 if one fails")
    parser.add_argument("--isolate", action="store_true",
                        help="check each device in a process of its own, which its driver may take down")
    add_listing(parser)


def add_plugin_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--traceback", metavar="ID", help="where this plugin's own code went wrong")
    parser.add_argument("--hooks", action="store_true", help="the plugins that implement or observe each hook")
    add_listing(parser)


def devices(args: Namespace) -> int:
    from ...runtime.service.runtime import runtime
    from ..printing.table import show, show_json

    host = runtime().host
    if args.isolate:
        rows = _checked_apart(host, args.names, args.plugin)
    else:
        rows = _device_rows(host, args)
    if args.json:
        show_json(rows)
    elif rows:
        on_request = host.on_request()
        texts = [row | {"memory": _memory(row), "attributes": _attributes(row, on_request)}
                 for row in rows]
        columns = ("name", "check", "ms", "plugin", "status", "reason", "remedy", "memory", "attributes")
        show(texts, columns, wrap=("reason", "remedy", "attributes"))
    else:
        say(f"no plugin brings a device; the CPU's is installed with: {install_hint('heald-cpu')}")
    return int(any(row.get("check") == "FAIL" for row in rows))


def _device_rows(host: Host, args: Namespace) -> list[dict[str, Any]]:
    """The rows of the chosen devices. Named devices are requested, and scanned in this process. Of all devices, types
    that serve on request only are scanned in processes of their own."""
    from ...runtime.service.runtime import scanned_apart

    if args.names:
        with ticking("scanning"):
            records = _device_records(host, args.names)
        return [_check(record, host) if args.check else _device(record) for record in records]
    rows: list[dict[str, Any]] = []
    for device_type in host.preference():
        nobody = scanned_apart(device_type)
        if nobody is not None:
            scanned_rows = _rows_of_processes(nobody, args.plugin, check=args.check)
            rows += [row if args.check else _unchecked_row(row) for row in scanned_rows]
            continue
        with ticking("scanning"):
            records = host.records(device_type)
        rows += [_check(record, host) if args.check else _device(record) for record in records]
    return rows


def _unchecked_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("check", "ms")}


def _rows_of_processes(device: Mapping[str, Any], plugins: Sequence[str], *, check: bool) -> list[dict[str, Any]]:
    """The rows of a device or a type from a process of its own."""
    from ...runtime.service.device_process import list_apart

    with ticking(f"{'checking' if check else 'scanning'} {device['name']}"):
        return list_apart(device, plugins, check=check)


def _device_records(host: Host, names: Sequence[str]) -> list[DeviceRecord]:
    """The records of these names; `T:*` names all of a type. Raises NotFound."""
    from ...errors import NotFound, closest

    types = [t for t in host.preference() if t in [name.partition(":")[0] for name in names]]
    records = [record for device_type in types for record in host.records(device_type)]
    for name in names:
        if name not in [record.name for record in records] and name.removesuffix(":*") not in types:
            suggestions = closest(name, [record.name for record in records] or types)
            raise NotFound(f"there is no device {name}", device=name,
                           hint=f"did you mean {suggestions[0]}?" if suggestions else "heald devices lists them")
    return [record for record in records if record.name in names or f"{record.type}:*" in names]


def _checked_apart(host: Host, names: Sequence[str], plugins: Sequence[str]) -> list[dict[str, Any]]:
    """As _check, each device in a process of its own. A type is scanned in one, too."""
    types = dict.fromkeys(name.partition(":")[0] for name in names) if names else host.preference()
    announced = {announced.type: announced.plugin for announced in host.registries.device_types.by_priority()}
    rows: list[dict[str, Any]] = []
    for device_type in types:
        if device_type not in announced:
            _device_records(host, [f"{device_type}:*"])
        nobody = {"name": f"{device_type}:*", "type": device_type, "plugin": announced[device_type], "attributes": {}}
        for row in _rows_of_processes(nobody, plugins, check=False):
            if not names or row["name"] in names or f"{device_type}:*" in names:
                rows += [row] if row.get("check") == "FAIL" else _rows_of_processes(row, plugins, check=True)
    dead = {row["type"] for row in rows if row["name"].endswith(":*")}
    for name in names:
        if name not in [row["name"] for row in rows] and name.partition(":")[0] not in dead:
            _device_records(host, [name])
    return rows


def _device(record: DeviceRecord) -> dict[str, Any]:
    return {"name": record.name, "type": record.type, "plugin": record.plugin, "status": record.status,
            "reason": record.reason, "remedy": record.remedy, "attributes": dict(record.attributes)}


def _check(record: DeviceRecord, host: Host) -> dict[str, Any]:
    """Open a device, which runs a copy and a kernel on it, and check its waits."""
    from ...errors import HealdError, PluginError
    from ...runtime.host.check_limit import NoAnswer, limited_check
    from ...runtime.host.device_check import check_device

    start = perf_counter()
    with ticking(f"checking {record.name}"), limited_check():
        try:
            device = host.open(record.name)
            passed = True
            try:
                check_device(device, host.registries, record.name, record.plugin)
            except HealdError as error:
                record.give_up(error)
                record.is_open = record.is_open and not isinstance(error, NoAnswer)  # its `close` would hang, too
                passed = False
            without_kernels = not any(k.device_type == record.type for k in host.registries.kernels.loaded_kernels())
        except PluginError:  # of a plugin that the command line or config names, which may be another than the device's
            raise
        except HealdError:  # the record says why
            passed = without_kernels = False
    took = round(1000 * (perf_counter() - start), 1)
    row = {"check": "PASS" if passed else "FAIL", "ms": took, **_device(record)}
    if without_kernels:
        return row | _reason_without_kernels(record.type, host)
    return row | _reason_of_unknown_ops(record.type, host) if passed else row


def _reason_of_unknown_ops(device_type: str, host: Host) -> dict[str, str]:
    """The first kernels of the device type whose op does not exist, with a remedy; empty where every op exists."""
    kernels = host.registries.kernels.kernels_of_unknown_ops(device_type)
    if not kernels:
        return {}
    named = [f"'{kernel.op}' (plugin {kernel.pack})" for kernel, _ in kernels]
    more = f" and {len(named) - LISTED_KERNELS} more" if len(named) > LISTED_KERNELS else ""
    return {"reason": f"{NO_SUCH_OP} {', '.join(named[:LISTED_KERNELS])}{more}", "remedy": kernels[0][1]}


def _reason_without_kernels(device_type: str, host: Host) -> dict[str, str]:
    """Why a device only copies. A plugin that names kernels may register none."""
    plugins = sorted({pack.plugin for pack in host.registries.kernels.packs() if pack.device_type == device_type})
    if not plugins:
        return {"reason": NO_KERNELS.format(type=device_type), "remedy": NAME_KERNELS}
    return {"reason": NONE_REGISTERED.format(plugins=" and ".join(plugins), type=device_type),
            "remedy": REGISTER_KERNELS}


def _memory(row: Mapping[str, Any]) -> str:
    from ..printing.table import byte_text

    memory = row["attributes"].get("memory")
    return byte_text(memory) if isinstance(memory, int) else ""


def _attributes(row: Mapping[str, Any], on_request: Collection[str]) -> str:
    """The attributes as text, with the facts that decide whether a node without a request may come to the device."""
    is_on_request = row["type"] in on_request and row["status"] != "unavailable"
    roles = ["serves on request only"] if is_on_request else []
    roles += ["no accelerator"] if row["attributes"].get("accelerator") is False else []
    attributes = {key: _figures(value) if key == "cost" else value for key, value in row["attributes"].items()
                  if key != "memory"}
    texts = [key if value is True else f"{key} {value}" for key, value in attributes.items() if value is not False]
    return ", ".join([*roles, *texts])


def _figures(cost: object) -> object:
    if not isinstance(cost, Mapping):
        return cost
    return "; ".join(f"{name} {figure:g}" if isinstance(figure, float) else f"{name} {figure}"
                     for name, figure in cost.items())


def plugins(args: Namespace) -> int:
    from ...runtime.service.runtime import runtime
    from ..printing.table import show, show_json

    records = runtime(checks=False).plugins.listing()
    failed = int(bool(runtime(checks=False).plugins.refused))  # by --plugin
    if args.traceback is not None:
        return _traceback(records, args.traceback) or failed
    if args.hooks:
        rows = [*_hook_rows(records)]
        show_json(rows) if args.json else show(rows, ("hook", "plugin", "distribution", "how", "status"))
        return failed
    rows = [_plugin(record) for record in records]
    if args.json:
        show_json(rows)
    elif rows:
        texts = [row | {"brings": _brings(row["registered"])} for row in rows]
        show(texts, ("id", "status", "distribution", "version", "brings", "reason", "remedy"),
             wrap=("brings", "reason", "remedy"))
    else:
        say(f"no plugin is installed; the CPU's is installed with: {install_hint('heald-cpu')}")
    return failed


def _plugin(record: PluginRecord) -> dict[str, Any]:
    return {"id": record.id, "status": record.status, "distribution": record.distribution, "version": record.version,
            "module": record.module, "registered": dict(record.registered), "reason": record.reason,
            "remedy": record.remedy}


def _hook_rows(records: Sequence[PluginRecord]) -> Iterator[dict[str, Any]]:
    """Yield a row for each hook and plugin that implements or observes it, in the order in which hooks are called."""
    from ...runtime.contract.hookspecs import Contribution, registrars

    for hook in registrars(Contribution("")):
        for how, has in (("implements", "hooks"), ("observes", "wrappers")):
            for record in records:
                if hook in getattr(record, has):
                    yield {"hook": hook, "plugin": record.id, "distribution": record.distribution, "how": how,
                           "status": record.status}


def _brings(registered: Mapping[str, Any]) -> str:
    texts = {kind: ", ".join(what) if isinstance(what, list) else str(what) for kind, what in registered.items()}
    return "; ".join(f"{kind} {text}" for kind, text in texts.items())


def _traceback(records: list[PluginRecord], plugin_id: str) -> int:
    from ...errors import NotFound, closest

    for record in records:
        if record.id == plugin_id:
            say(record.traceback.rstrip() or f"plugin {plugin_id} is {record.status}: it has no traceback")
            return 0
    suggestions = closest(plugin_id, [record.id for record in records])
    hint = f"did you mean {suggestions[0]}?" if suggestions else "heald plugins lists them"
    raise NotFound(f"no plugin is called '{plugin_id}'", hint=hint)
