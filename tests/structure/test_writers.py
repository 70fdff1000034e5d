"""All files are written by `heald.runtime.support.whole_file`, and it alone uses `heald.runtime.support.disk`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("core/heald", "device_cpu/heald_cpu", "device_gpu", "device_opencl", "conformance/heald_conformance",
           "plugins")
DISK, WHOLE_FILE = "core/heald/runtime/support/disk.py", "core/heald/runtime/support/whole_file.py"
# These write tables and stubs of the source tree, which is under version control.
GENERATORS = ("device_cpu/heald_cpu/kernels/__main__.py", "plugins/onednn/make_declarations.py",
              "plugins/tf_ops/heald_tf_ops/metadata/__main__.py", "plugins/tf_ops/heald_tf_ops/stubs.py")
# Functions and methods that change files or folders, under any name of their module or object.
WRITING = frozenset((
    "write_text", "write_bytes", "touch", "mkdir", "makedirs", "rmdir", "removedirs", "unlink", "rmtree", "copytree",
    "copyfile", "copy2", "symlink_to", "hardlink_to", "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory",
    "TemporaryFile", "savez", "savez_compressed", "savetxt", "tofile", "fsync", "fdatasync", "renames", "truncate",
    "mkfifo", "mknod", "memmap"))
# The same for names that others have, too: by the module's name before the dot.
OF_MODULES = frozenset((f"{module}.{name}" for module, names in {
    "os": ("rename", "replace", "remove", "link", "symlink"), "shutil": ("move", "copy"), "np": ("save",),
    "numpy": ("save",), "pickle": ("dump",), "json": ("dump",)}.items() for name in names))
OPEN_FLAGS = frozenset(("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"))


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each expression that may change a file."""
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Call) and _is_write(node)) or (
                isinstance(node, ast.Attribute) and node.attr in OPEN_FLAGS):
            yield node.lineno, ast.unparse(node)


def _is_write(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    name = function.rpartition(".")[2]
    if name in WRITING or function in OF_MODULES:
        return True
    if name in ("replace", "rename") and isinstance(call.func, ast.Attribute):  # Path's take one argument, str's two
        return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
    return name in ("open", "fdopen", "ZipFile", "FileIO") and any(
        isinstance(mode, str) and len(mode) <= 3 and set(mode) & set("wax+") for mode in modes)


def sources() -> list[Path]:
    return [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))
            if "templates" not in path.parts and path.relative_to(ROOT).as_posix() not in (DISK, *GENERATORS)]


def test_no_module_changes_files_past_the_disk():
    allowed = {  # by file: the expressions that write something else than a file of a user
        "conformance/heald_conformance/hooks/loaders.py": {  # copies in temporary folders, which cases damage
            "tempfile.TemporaryDirectory(prefix='heald-conformance-')", "shutil.copytree(path, copy)",
            "shutil.copyfile(path, copy)", "path.open('wb')", "path.write_bytes(STRANGERS[content])",
            "file.truncate(SPARSE_BYTES)", "file.write_bytes(content.tobytes())",
            "file.write_bytes(content[:int(left)])"},
        "core/heald/cli/printing/standard_streams.py": {"os.O_WRONLY", "open(number, 'w', encoding='utf-8', "
                                               "errors='backslashreplace', closefd=False)"},  # standard streams
        "core/heald/runtime/support/archive.py": {  # a temporary folder of the process
            "tempfile.mkdtemp(prefix='heald-')", "target.mkdir(parents=True, exist_ok=True)",
            "target.parent.mkdir(parents=True, exist_ok=True)", "target.open('wb')",
            "shutil.rmtree(folder, ignore_errors=True)"},
        "plugins/saved_model/heald_saved_model/checkpoint_ops.py": {"folder.rmdir()"},  # empty since a merge
        "plugins/ray/heald_ray/connection.py": {  # an empty folder for workers: gone when they have it
            "TemporaryDirectory(prefix='heald-ray-')"},
        "plugins/serve/heald_serve/tls.py": {  # a key for OpenSSL, which reads files alone: gone when it is read
            "tempfile.mkstemp(prefix='heald-serve-')", "os.fdopen(handle, 'w', encoding='utf-8')",
            "Path(name).unlink()"},
        "plugins/tools/heald_tools/model_trial.py": {"TemporaryFile()"},  # without a name: the errors of a process
        "plugins/tools/heald_tools/recorded_diff.py": {"TemporaryDirectory()"},
        "plugins/tools/heald_tools/tensorflow_run.py": {"TemporaryDirectory()"},
        "plugins/tools/heald_tools/tensorflow_script.py": {"np.savez(request['output'], **arrays)"},  # in the above
        "plugins/tools/heald_tools/scan_parts.py": {"TemporaryFile()"},  # without a name: the rows of a process
        "plugins/tools/heald_tools/outputs.py": {  # a member of an archive that whole_file opened
            "zipfile.ZipFile(out, 'w')", "archive.open(f'{name}.npy', 'w', force_zip64=True)"},
        "plugins/tools/heald_tools/rows/sinks.py": {"self._buffer.truncate()"},  # in memory
        "plugins/tools/heald_tools/rows/writers.py": {
            "zipfile.ZipFile(self._out, 'w')", "archive.open(f'{name}.npy', 'w', force_zip64=True)"},
    }
    others = {}
    for path in sources():
        module_path = path.relative_to(ROOT).as_posix()
        texts = {text for _, text in writes(path.read_text("utf-8"))} - allowed.get(module_path, set())
        if texts:
            others[module_path] = texts
    assert others == {}


@pytest.mark.parametrize("text", [
    "path.write_text('x')", "open(path, 'w')", "path.open('xb')", "path.open(mode='a')", "os.rename(a, b)",
    "path.replace(other)", "path.rename(other)", "os.open(path, os.O_WRONLY)", "np.save(path, array)",
    "array.tofile(path)", "shutil.rmtree(path)", "tempfile.mkstemp()", "io.FileIO(path, 'rb+')", "path.mkdir()",
    "np.savez(path, a=a)", "zipfile.ZipFile(path, 'w')", "json.dump(rows, file)"])
def test_each_way_to_change_a_file_is_noticed(text):
    assert list(writes(text))


@pytest.mark.parametrize("text", ["text.replace('a', 'b')", "graph.replace(nodes=nodes)", "node.replace(**changes)",
                                  "open(path, 'rb')", "path.open()", "graph.rename(old, new)", "json.dumps(rows)"])
def test_readers_and_other_methods_of_these_names_are_not_taken_for_writers(text):
    assert not list(writes(text))


def test_whole_file_alone_uses_the_disk():
    users = [path.relative_to(ROOT).as_posix() for path in sources()
             if any(isinstance(node, ast.ImportFrom)
                    and {f"{node.module}", *(alias.name for alias in node.names)} & {"disk", "support.disk"}
                    for node in ast.walk(ast.parse(path.read_text("utf-8"))))]
    assert users == [WHOLE_FILE]
