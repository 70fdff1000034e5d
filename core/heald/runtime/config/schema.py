"""Typed settings: tables of settings, each with its origin, are read into dataclasses by their type hints.

A hint is str, int, float, bool, None, Any, Literal[...], tuple[...], list[T], dict[str, T] or their union. Settings
come in layers, the strongest first. A key is taken from the first layer that has it; the entries of a dict-valued key
are merged. Every layer is checked, so that a mistake shows even where it is overridden. A mistake is an error, but in a
found file a Refusal: the setting does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ...errors import HealdError, InvalidArgument, PluginError, closest
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple

T = TypeVar("T")

LONGEST_SHOWN_CHARACTERS = 200  # characters of a wrong value in an error
LARGEST_HINTED_KEYS = 10  # unknown keys that are compared with the known ones: the comparison is slow


class FoundFile(NamedTuple):
    """A file that may come from a stranger, and therefore sets harmless settings only.

    `why`: The reason, as the predicate of a sentence about the file.
    `remedy`: The command that lets the file set everything.
    """

    path: str
    why: str
    remedy: tuple[str, ...]


class Setting(NamedTuple):
    """One unchecked value of the config, with its origin. The value of a table is a dict from keys to Settings."""

    value: Any
    origin: str
    is_text: bool = False  # from an environment variable: read by its type hint
    found_file: FoundFile | None = None


class SettingRow(NamedTuple):
    """One line of `heald config show --origin`."""

    key: str
    value: Any
    origin: str
    found_file: FoundFile | None = None


class Refusal(NamedTuple):
    """A setting of a found file that does not fit and is not used, and the reason as a text with its origin."""

    row: SettingRow
    reason: str


# True for a setting that a found file may make: from its field, and its value in the file.
Harmless = Callable[[Field[Any] | None, Any], bool]


def as_setting(
    value: Any, origin: Callable[[tuple[str, ...]], str], path: tuple[str, ...] = (),
    found_file: FoundFile | None = None,
) -> Setting:
    """Nested dicts as a Setting. `origin` returns the origin of the value at a path of keys."""
    if isinstance(value, Mapping):
        value = {str(k): as_setting(v, origin, (*path, str(k)), found_file) for k, v in value.items()}
    return Setting(value, origin(path), found_file=found_file)


def as_table(setting: Setting, key: str) -> dict[str, Setting]:
    """The entries of a setting that must be a table. Raises InvalidArgument for any other setting."""
    if setting.is_text and setting.value.lstrip().startswith("{"):
        setting = as_setting(_parse_inline(setting, key), lambda _: setting.origin)
    if not isinstance(setting.value, dict):
        raise _wrong(setting, dict, key)
    return setting.value


def plain(setting: Setting) -> Any:
    """The value alone, tables as plain dicts."""
    if isinstance(setting.value, dict):
        return {key: plain(entry) for key, entry in setting.value.items()}
    return setting.value


def read(setting: Setting, hint: Any, key: str) -> Any:
    """The value, checked against the hinted type. Raises InvalidArgument for another type, PluginError for an unknown
    hint."""
    reader = _READERS.get(get_origin(hint) or hint)
    if reader is None:
        raise PluginError(f"{key} is declared as {hint}, which config cannot read", hint=_READABLE_TYPES_HINT)
    return reader(setting, hint, key)


def read_layers(hint: Any, layers: Iterable[Setting], key: str) -> tuple[Any, list[SettingRow]]:
    """The merged value of the layers, of which there is at least one, with the origin of each part."""
    values = [(read(setting, hint, key), setting) for setting in layers]
    if (get_origin(hint) or hint) not in (dict, Mapping):
        value, setting = values[0]
        return value, [SettingRow(key, value, setting.origin, setting.found_file)]
    merged: dict[str, Any] = {}
    rows: dict[str, SettingRow] = {}
    for value, setting in reversed(values):
        merged |= value
        rows |= {k: SettingRow(f"{key}.{k}", value[k], s.origin, s.found_file)
                 for k, s in as_table(setting, key).items()}
    return merged, [rows[name] for name in sorted(rows)]


class SectionReading(NamedTuple):
    """A section, read from its layers.

    `values`: The arguments for its dataclass.
    `rows`: Each field with its origin.
    `ignored`: The settings that found files may not make.
    `refused`: The settings of found files that do not fit.
    """

    values: dict[str, Any]
    rows: list[SettingRow]
    ignored: list[SettingRow]
    refused: list[Refusal]


@contextmanager
def refusing(setting: Setting, key: str, refused: list[Refusal]) -> Iterator[None]:
    """Turn InvalidArgument for a setting of a found file into a Refusal; for any other setting it is raised."""
    try:
        yield
    except InvalidArgument as error:
        if setting.found_file is None:
            raise
        refused.append(Refusal(SettingRow(key, plain(setting), setting.origin, setting.found_file), str(error)))


def read_tables(layers: Iterable[Setting], key: str, refused: list[Refusal]) -> list[dict[str, Setting]]:
    """The entries of each layer of a section. Raises InvalidArgument for a layer that is no table."""
    tables = []
    for layer in layers:
        with refusing(layer, key, refused):
            tables.append(as_table(layer, f"[{key}]" if key else "the config"))
    return tables


def read_section(
    cls: type[Any], layers: Sequence[Setting], section: str, harmless: Harmless, make: Callable[[dict[str, Any]], T]
) -> tuple[T, SectionReading]:
    """Read a section, and make its object. When `make` raises HealdError for the values, found files do not count.

    Raises as `read_fields` and `make`.
    """
    reading = read_fields(cls, layers, section, harmless)
    try:
        return make(reading.values), reading
    except HealdError as error:
        found_rows = [row for row in reading.rows if row.found_file is not None]
        if not found_rows:
            raise _with_origin(error, reading.rows, section) from None
        named_layers = [layer for layer in layers if layer.found_file is None]
        value, named_reading = read_section(cls, named_layers, section, harmless, make)
        named_reading.ignored.extend(reading.ignored)
        text = str(error)
        refused = (Refusal(row, text if row.origin in text else f"{row.origin}: {text}") for row in found_rows)
        named_reading.refused.extend([*reading.refused, *refused])
        return value, named_reading


def _with_origin(error: HealdError, rows: Sequence[SettingRow], section: str) -> HealdError:
    """The error of a section's object, with the origin of the setting whose name begins its message."""
    name = error.message.removeprefix(f"[{section}] ").partition(" ")[0].rstrip(":")
    key = f"{section}.{name}"
    origin = next((row.origin for row in rows if row.key == key or row.key.startswith(f"{key}.")), "default")
    return error if origin == "default" else type(error)(f"{origin}: {error.message}", hint=error.hint)


def read_fields(cls: type[Any], layers: Sequence[Setting], section: str, harmless: Harmless) -> SectionReading:
    """Read a section for the frozen dataclass `cls`.

    Raises InvalidArgument for unknown keys, wrong types and missing values, PluginError for an unfit `cls`.
    """
    if not (isinstance(cls, type) and is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise PluginError(f"the settings of [{section}] are not declared as a frozen dataclass",
                          hint="write @dataclass(frozen=True) above class Config")
    hints = _type_hints(cls) if layers or not cls.__module__.startswith("heald.") else {}  # core's own hints are right
    declared = [field for field in fields(cls) if field.init]
    reading = SectionReading({}, [], [], [])
    names = [field.name for field in declared]
    tables = [known_entries(table, names, section, reading.refused)
              for table in read_tables(layers, section, reading.refused)]
    for field in declared:
        _read_field(reading, field, hints.get(field.name), tables, section, harmless)
    return reading


def _type_hints(cls: type[Any]) -> dict[str, Any]:
    with plugin_guard(f"reading the type hints of {cls.__module__}.{cls.__qualname__}"):
        return get_type_hints(cls)


def _read_field(
    reading: SectionReading, field: Field[Any], hint: Any, tables: Sequence[Mapping[str, Setting]], section: str,
    harmless: Harmless,
) -> None:
    key = f"{section}.{field.name}"
    settings = [table[field.name] for table in tables if field.name in table]
    counting: list[Setting] = []
    for setting in settings:
        with refusing(setting, key, reading.refused):
            row = SettingRow(key, read(setting, hint, key), setting.origin, setting.found_file)
            if setting.found_file is None or harmless(field, setting.value):
                counting.append(setting)
            else:
                reading.ignored.append(row)
    if not counting:
        reading.rows.append(SettingRow(key, _default(field, section), "default"))
        return
    reading.values[field.name], rows = read_layers(hint, counting, key)
    reading.rows.extend(rows)


def known_entries(
    table: Mapping[str, Setting], known_keys: Sequence[str], section: str, refused: list[Refusal]
) -> dict[str, Setting]:
    """The entries whose keys are known. Raises InvalidArgument for the first other, with the names nearest to it."""
    entries = {}
    for key, setting in table.items():
        if key in known_keys:
            entries[key] = setting
            continue
        with refusing(setting, f"{section}.{key}".lstrip("."), refused):
            similar_keys = closest(key, known_keys) if len(refused) < LARGEST_HINTED_KEYS else []
            what = f"[{section}] has no key '{key}'" if section else f"there is no section [{key}]"
            hint = (f"did you mean {' or '.join(similar_keys)}?" if similar_keys else
                    f"known: {', '.join(known_keys) or 'none'}")
            if section == "plugins" and not similar_keys:
                hint += "; options of a plugin are in [plugin.ID]"
            raise InvalidArgument(f"{setting.origin}: {what}", hint=hint)
    return entries


def describe(hint: Any) -> str:
    """A type hint as text for users."""
    kind, args = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return " or ".join(repr(option) for option in args)
    if kind in (Union, UnionType):
        return " or ".join(describe(member) for member in args)
    if kind in (tuple, list):
        return f"a list, each item {describe(args[0])}" if args else "a list"
    return {bool: "true or false", int: "an integer", float: "a number", str: "a string", NoneType: "none",
            dict: "a table", Mapping: "a table"}.get(kind, str(hint))


def _wrong(setting: Setting, hint: Any, key: str) -> InvalidArgument:
    value_text = repr(plain(setting))
    shown = value_text if len(value_text) <= LONGEST_SHOWN_CHARACTERS else f"{value_text[:LONGEST_SHOWN_CHARACTERS]}..."
    return InvalidArgument(f"{setting.origin}: {key} must be {describe(hint)}, not {shown}")


def _default(field: Field[Any], section: str) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    if field.default is MISSING:
        name = f"{section}.{field.name}"
        variable = f"HEALD_{name.replace('.', '__').replace('-', '_').upper()}"
        hint = f"set it in heald.toml or as {variable}"
        raise InvalidArgument(f"{name} has no default and is not set", hint=hint)
    return field.default


def _parse_inline(setting: Setting, key: str) -> Any:
    """A TOML array or inline table in an environment variable."""
    import tomllib

    try:
        return tomllib.loads(f"value = {setting.value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"{setting.origin}: {key} cannot be read as TOML: {error}") from None


_TEXT: dict[type, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: float,
    bool: lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()],
}


def _scalar(setting: Setting, hint: Any, key: str) -> Any:
    value = setting.value
    if setting.is_text:
        try:
            return _TEXT[hint](value)
        except (ValueError, KeyError):
            raise _wrong(setting, hint, key) from None
    if type(value) is hint or (hint is float and type(value) is int):  # bool is an int to isinstance
        return hint(value)
    raise _wrong(setting, hint, key)


def _none(setting: Setting, hint: Any, key: str) -> None:
    if setting.value is not None and not (setting.is_text and setting.value.lower() == "none"):
        raise _wrong(setting, hint, key)


def _literal(setting: Setting, hint: Any, key: str) -> Any:
    for option in get_args(hint):
        text = str(option) if setting.is_text else option
        if type(setting.value) is type(text) and setting.value == text:
            return option
    raise _wrong(setting, hint, key)


def _union(setting: Setting, hint: Any, key: str) -> Any:
    """The first member that fits. None is tried first and text last, since every text fits a str."""
    for member in sorted(get_args(hint), key=lambda m: (m is not NoneType, m is str)):
        try:
            return read(setting, member, key)
        except InvalidArgument:
            continue
    raise _wrong(setting, hint, key)


def _sequence(setting: Setting, hint: Any, key: str) -> Any:
    kind, args = get_origin(hint) or hint, get_args(hint) or (Any, ...)
    items, is_text = setting.value, False
    if setting.is_text:
        is_text = not items.lstrip().startswith("[")
        items = [t.strip() for t in items.split(",") if t.strip()] if is_text else _parse_inline(setting, key)
    if not isinstance(items, list | tuple):
        raise _wrong(setting, hint, key)
    repeated = kind is list or args[-1] is ...
    if not repeated and len(items) != len(args):
        raise InvalidArgument(f"{setting.origin}: {key} must have {len(args)} items, not {len(items)}")
    hints = [args[0]] * len(items) if repeated else args
    entries = [as_setting(item, lambda _: setting.origin)._replace(is_text=is_text) for item in items]
    return kind(read(e, h, f"{key}[{i}]") for i, (e, h) in enumerate(zip(entries, hints, strict=True)))


def _mapping(setting: Setting, hint: Any, key: str) -> dict[str, Any]:
    _, kind = get_args(hint) or (str, Any)
    return {name: read(entry, kind, f"{key}.{name}") for name, entry in as_table(setting, key).items()}


_READABLE_TYPES_HINT = "use str, int, float, bool, None, Literal, tuple[...], list[T], dict[str, T] or a union of them"
_READERS: dict[Any, Callable[[Setting, Any, str], Any]] = {
    str: _scalar, int: _scalar, float: _scalar, bool: _scalar, NoneType: _none, Literal: _literal,
    Union: _union, UnionType: _union, tuple: _sequence, list: _sequence, dict: _mapping, Mapping: _mapping,
    Any: lambda setting, _hint, _key: plain(setting),
}
