"""heald new: a plugin to start from, a copy of one of heald's example plugins under another name.

The examples are the templates: a wheel has them in the folder `templates`, a checkout beside this plugin and in
`examples/`. A copy replaces their names, in files and file names. Devices, kernels, ops and passes are packages; a
loader, queue, allocator, handler, command or compiler starts as one file, which `--plugin` takes. `--from MODEL OP`
writes the op's own signature in the place of the example's.

The next command needs no installation, and so no package index: it loads the plugin from its folder.
"""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from heald import errors
from heald.api.cli import add_loading, open_graph, say
from heald.runtime.support import install, whole_file

if TYPE_CHECKING:
    from .op_signature import FoundOp

_IN_PLACE = "cd {folder} && HEALD_PLUGINS__LOAD=heald_{plugin}.plugin python -m pytest"
NEXT = {  # by kind of plugin, the command that tests the copy
    "device": f"{_IN_PLACE} --pyargs heald_conformance --device {{type}}:0",
    "kernels": _IN_PLACE,
    "ops": _IN_PLACE,
    "pass": _IN_PLACE,
}
CONFORMANCE = "python -m pytest --pyargs heald_conformance --plugin {file} --"


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
    "compiler": FileTemplate("blocked_compiler.py", {
        "examples/blocked_compiler.py": "{file}", '"blocked"': '"{name}"', "--compiler blocked": "--compiler {name}",
        "BlockedCompiler": "{Name}Compiler", "BlockedKernel": "{Name}Kernel",
    }, CONFORMANCE + "compiler {name}"),
    "command": FileTemplate("count_command.py", {
        "examples/count_command.py": "{file}", "heald count": "heald {dashed}", '"count"': '"{dashed}"',
    }, "HEALD_PLUGINS__LOAD={file} heald {dashed} --help"),
}
NO_TEXTS: Mapping[str, str] = MappingProxyType({})
SUFFIXES = frozenset((".py", ".toml", ".md", ".typed"))
EPILOG = """\
Makes the folder NAME with a plugin that works as it stands: an installable package, its
tests, and a README that says what to change. device: a device type with its kernels.
kernels: kernels for the CPU. ops: an op with its checks and its kernel. pass: a graph
pass. 'heald new ops NAME --from MODEL OP' declares an op of a model, and leaves its
kernel to be written. Or makes the file NAME.py with a plugin. loader: a file format. queue: a work queue.
allocator: host memory. handler: eager ops. command: heald NAME. compiler:
groups of nodes as one kernel."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("kind", choices=sorted([*NEXT, *FILES]), help="the kind of plugin")
    parser.add_argument("name", metavar="NAME", nargs="?",
                        help="the plugin's id, which also names package, device type and company of ops: "
                             "small letters, digits, '-' and '_'; with --from the op's name is enough")
    parser.add_argument("--from", dest="ops", nargs=2, action="append", default=[], metavar=("MODEL", "OP"),
                        help="ops: take the signature of this op from this model, and leave its kernel to be "
                             "written (repeatable)")
    add_loading(parser)


def new(args: Namespace) -> int:
    if args.ops and args.kind != "ops":
        raise errors.InvalidArgument(f"--from is for ops, and the kind is {args.kind}",
                                     hint=f"heald new ops --from {shlex.join(args.ops[0])}")
    if args.name is None:
        args.name = _name_of_op(args)
    if args.ops:
        return _new_ops(args)
    return _new_file(args) if args.kind in FILES else _new_package(args)


def _name_of_op(args: Namespace) -> str:
    """The name of a plugin for the first op of --from. Raises InvalidArgument without one."""
    if not args.ops:
        raise errors.InvalidArgument(f"the plugin needs a name: heald new {args.kind} NAME")
    from .new_ops import function_name

    return function_name(args.ops[0][1]).replace("_", "-")


def _new_ops(args: Namespace) -> int:
    """Write the package of the ops of --from: the example's frame, with signatures from the models."""
    from .new_ops import op_texts, package_files

    folder = _free_place(args.name, args.name)
    texts = op_texts(_find_op(args, model, op) for model, op in args.ops)
    plugin = args.name.replace("-", "_")
    files = package_files(f"heald_{plugin}", texts, args.ops[0][0])
    count = write_copy(template_folder("ops"), folder, names_in_copy("ops", args.name), files)
    for text in texts:
        say(f"{text.found.op.name}: its signature comes from {text.found.source}")
        for doubt in text.doubts:
            say(f"  {doubt}")
    say(f"{folder}: {count} files; write the kernels in {folder / f'heald_{plugin}' / 'kernels.py'}")
    _tell_next("ops", folder, plugin)
    return 0


def _find_op(args: Namespace, model: str, op: str) -> FoundOp:
    """Return the op of a model. Raises AlreadyExists for one that a plugin has, and the errors of the model."""
    from heald.runtime.service import runtime

    from .op_signature import find_op

    ops = runtime.runtime().host.registries.ops
    if op in ops:
        owner = ops.plugin_of(op)
        raise errors.AlreadyExists(f"op {op} is {'heald' if owner is None else f'plugin {owner}'}'s already",
                                   hint=f"'heald ops {shlex.quote(op)}' shows it; 'heald new kernels NAME' starts a "
                                        "kernel")
    opened = open_graph(Namespace(**vars(args) | {"model": model}), weights=False)
    return find_op(op, opened.graph, Path(model), ops)


def _tell_next(kind: str, folder: Path, plugin: str) -> None:
    """Tell how the plugin is tested in its folder, and how it is installed."""
    _tell_test_needs()
    say(f"install it later: {install.install_folder_command(f'./{folder}[test]')}")
    say(f"next: {NEXT[kind].format(folder=folder, plugin=plugin, type=plugin.upper())}")


def _tell_test_needs() -> None:
    """Name the suite that the tests run, where it is not installed."""
    if not install.is_importable("heald_conformance"):
        say(f"its tests need heald-conformance: {install.install_hint('heald', 'heald-conformance')}")


def _new_file(args: Namespace) -> int:
    template = FILES[args.kind]
    name = args.name.replace("-", "_")
    file = _free_place(args.name, f"{name}.py")
    words = {"file": str(file), "name": name, "dashed": name.replace("_", "-"), "Name": _class_name(name)}
    names = {word: copy.format(**words) for word, copy in template.names.items()}
    text = _fill_template(template_file(args.kind).read_text("utf-8"), names)
    whole_file.write_new(file, [text.encode()])
    say(f"{file}: a copy of heald's example {template.example}")
    if "heald_conformance" in template.test:
        _tell_test_needs()
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
    _tell_next(args.kind, folder, names["example"])
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


def write_copy(template: Path, folder: Path, names: dict[str, str], texts: Mapping[str, str] = NO_TEXTS) -> int:
    """Write the copy, which appears once it is complete. Returns the number of files.

    `texts`: By their paths in the copy, files with a text of their own in the place of the template's.
    """
    places = {_fill_template(file.relative_to(template).as_posix(), names): file for file in template_files(template)}
    with whole_file.writing_folder(folder) as copy:
        for place, file in places.items():
            text = texts.get(place)
            text = _fill_template(file.read_text("utf-8"), names) if text is None else text
            whole_file.write_new(copy / place, [text.encode()])
    return len(places)


def template_files(template: Path) -> Iterator[Path]:
    """The files of a template, without caches and build outputs."""
    for path in sorted(template.rglob("*")):
        parts = path.relative_to(template).parts
        is_made = any(part.startswith((".", "__pycache__", "dist", "build")) for part in parts)
        if path.suffix in SUFFIXES and not is_made:
            yield path


def _fill_template(text: str, names: dict[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], text)
