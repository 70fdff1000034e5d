"""The working folder on sys.path. Python puts it there for `-m` and `-c`, and so does an empty part of PYTHONPATH.

Modules and entry points in it may have come with a model from a stranger. The command line removes the folder before it
imports anything else. The sys.path of a user's own program is left alone; only entry points are not taken from that
folder.

This module imports frozen modules only, which never come from a folder.
"""

import os
import sys


def remove_working_folder() -> None:
    """Remove the working folder from sys.path: the first entry, which Python adds, and empty or relative parts of
    PYTHONPATH.

    The folder stays where a .pth file or an absolute part of PYTHONPATH names it, and when heald itself is imported
    from it.
    """
    here = _working_folder()
    package_folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib is not frozen
    removed_entries = {"", os.curdir}
    if here != package_folder and here in _relative_python_paths():
        removed_entries.add(here)
    first = 0 if sys.flags.safe_path or here == package_folder or sys.path[:1] != [here] else 1
    sys.path[:] = [entry for entry in sys.path[first:] if entry not in removed_entries]


def is_working_folder(entry: str) -> bool:
    """True for an entry of sys.path that is the working folder, unless Python installs packages there."""
    import site

    if entry in ("", os.curdir):
        return True
    try:
        if not os.path.samestat(os.stat(entry), os.stat(os.curdir)):  # noqa: PTH116
            return False
    except OSError:
        return False
    return entry not in (*site.getsitepackages(), site.getusersitepackages())


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # the folder is gone
        return os.curdir


def _relative_python_paths() -> set[str]:
    """The relative parts of PYTHONPATH, as Python has put them on sys.path."""
    text = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    parts = text.split(os.pathsep) if text else []
    return {os.path.abspath(part) for part in parts if not os.path.isabs(part)} - set(parts)  # noqa: PTH100, PTH117
