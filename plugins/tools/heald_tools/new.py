"""heald new: a plugin to start from, a copy of one of heald's example plugins under another name.

The examples are the templates: a wheel has them in the folder `templates`, a checkout beside this plugin and in
`examples/`. A copy replaces their names, in files and file names. Devices, kernels, ops and passes are packages; a
loader, queue, allocator, handler or command starts as one file, which `--plugin` takes.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from heald import errors
from heald.api.cli import say
from heald.runtime.support import install, whole_file

NEXT = {  # by kind of plugin, the command that tests the copy
    "device": "pytest --pyargs heald_conformance --device {type}:0",
    "kernels": "pytest {folder}",
    "ops": "pytest {folder}",
    "pass": "pytest {folder}",
}
CONFORMANCE = "pytest --pyargs heald_conformance --plugin {file} --"


class FileTemplate(NamedTuple):
    """A plugin of one file: the file in `examples/`, its names and those of the copy, and the command that tests it."""

    example: str
    names: Mapping[str, str]
    test: str


FILES = {  # by kind of plugin
    "loader": FileTemplate("scale_loader.py", {
        "examples/scale_loader.py": "{file}", "model.scale": "model.{name}", '"scale 3"': '"{name} 3"',
        'b"scale "': 'b"{name} "', '"scale"': '"{name}"', "ScaleSource": "{Name}Source", "ScaleLoader": "{Name}Loader",
    }, "echo '{name} 3' > model.{name} && " + CONFORMANCE + "loader model.{name}"),
    "queue": FileTemplate("last_in_first_out.py", {
        "examples/last_in_first_out.py": "{file}", "last_in_first_out": "{name}", "lifo.toml": "{name}.toml",
        "LastInFirstOut": "{Name}",
    }, CONFORMANCE + "queue {name}"),
    "allocator": FileTemplate("page_allocator.py", {
        "examples/page_allocator.py": "{file}", '"pages"': '"{name}"', "pages.toml": "{name}.toml",
        "PageAllocator": "{Name}Allocator",
    }, CONFORMANCE + "allocator {name}"),
    "handler": FileTemplate("batching_handler.py", {
        "examples/batching_handler.py": "{file}", '"batching"': '"{name}"', "BatchingHandler": "{Name}Handler",
    }, CONFORMANCE + "handler {name}"),
    "command": FileTemplate("count_command.py", {
        "examples/count_command.py": "{file}", "heald count": "heald {dashed}", '"count"': '"{dashed}"',
    }, "HEALD_PLUGINS__LOAD={file} heald {dashed} --help"),
}
SUFFIXES = frozenset((".py", ".toml", ".md", ".typed"))
EPILOG = """\
Makes the folder NAME with a plugin that works as it stands: an installable package, its
tests, and a README that says what to change. device: a device type with its kernels.
kernels: kernels for the CPU. ops: an op with its checks and its kernel. pass: a graph
pass. Or makes the file NAME.py with a plugin. loader: a file format. queue: a work queue.
allocator: host memory. handler: eager ops. command: heald NAME."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("kind", choices=sorted([*NEXT, *FILES]), help="the kind of plugin")
    parser.add_argument("name", metavar="NAME",
                        help="the plugin's id, which also names package, device type and company of ops: "
                             "small letters, digits, '-' and '_'")


def new(args: Namespace) -> int:
    return _new_file(args) if args.kind in FILES else _new_package(args)


def _new_file(args: Namespace) -> int:
    template = FILES[args.kind]
    name = args.name.replace("-", "_")
    file = _free_place(args.name, f"{name}.py")
    words = {"file": str(file), "name": name, "dashed": name.replace("_", "-"), "Name": _class_name(name)}
    names = {word: copy.format(**words) for word, copy in template.names.items()}
    text = _fill_template(template_file(args.kind).read_text("utf-8"), names)
    whole_file.write_new(file, [text.encode()])
    say(f"{file}: a copy of heald's example {template.example}")
    say(f"its tests need: {install.install_hint('heald', 'heald-conformance')}")
    say(f"next: {template.test.format(**words)}")
    return 0


def template_file(kind: str) -> Path:
    """The example of a plugin of one file: in a wheel, or in a checkout of heald."""
    here = Path(__file__).parent
    packed = here / "templates" / f"{kind}.py"
    return packed if packed.exists() else here.parents[2] / "examples" / FILES[kind].example


def _new_package(args: Namespace) -> int:
    folder = _free_place(args.name, args.name)
    names = names_in_copy(args.kind, args.name)
    count = write_copy(template_folder(args.kind), folder, names)
    say(f"{folder}: {count} files, a copy of heald's example_{args.kind}; {folder / 'README.md'} says what to change")
    test = NEXT[args.kind].format(folder=folder, type=names["EXAMPLE"])
    say(f"its tests need: {install.install_hint('heald', 'heald-conformance')}")
    say(f"next: {install.install_folder_command(f'./{folder}[test]')} && {test}")
    return 0


def _free_place(name: str, place: str) -> Path:
    """The folder or file of the plugin. Raises InvalidArgument for a name that is none, AlreadyExists for one in use.
    """
    if re.fullmatch(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", name) is None:
        raise errors.InvalidArgument(f"'{name}' is no name of a plugin",
                                     hint="small letters, digits, '-' and '_', as in my_device")
    plugin = name.replace("-", "_")
    if plugin in entry_points(group="heald.plugins").names:
        raise errors.AlreadyExists(f"a plugin '{plugin}' is installed already", hint="choose another name")
    if find_spec(f"heald_{plugin}") is not None:
        raise errors.AlreadyExists(f"a package 'heald_{plugin}' is installed already", hint="choose another name")
    if Path(place).exists():
        raise errors.AlreadyExists(f"'{place}' exists already",
                                   hint="choose another name, or another folder to work in")
    return Path(place)


def _class_name(plugin: str) -> str:
    return "".join(part.capitalize() for part in plugin.split("_"))


def names_in_copy(kind: str, name: str) -> dict[str, str]:
    """The names in a template and in the copy, in the order of their replacement."""
    plugin = name.replace("-", "_")
    return {
        f"example_{kind}": plugin,
        f"example-{kind}": plugin.replace("_", "-"),
        "EXAMPLE": plugin.upper(),
        "Example": _class_name(plugin),
        "example": plugin,
    }


def template_folder(kind: str) -> Path:
    """The folder of an example: in a wheel, or in a checkout of heald."""
    here = Path(__file__).parent
    packed = here / "templates" / kind
    return packed if packed.exists() else here.parents[1] / f"example_{kind}"


def write_copy(template: Path, folder: Path, names: dict[str, str]) -> int:
    """Write the copy, which appears once it is complete. Returns the number of files."""
    files = list(template_files(template))
    with whole_file.writing_folder(folder) as copy:
        for file in files:
            target = copy / _fill_template(file.relative_to(template).as_posix(), names)
            whole_file.write_new(target, [_fill_template(file.read_text("utf-8"), names).encode()])
    return len(files)


def template_files(template: Path) -> Iterator[Path]:
    """The files of a template, without caches and build outputs."""
    for path in sorted(template.rglob("*")):
        parts = path.relative_to(template).parts
        is_made = any(part.startswith((".", "__pycache__", "dist", "build")) for part in parts)
        if path.suffix in SUFFIXES and not is_made:
            yield path


def _fill_template(text: str, names: dict[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], text)
