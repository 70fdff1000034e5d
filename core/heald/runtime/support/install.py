"""Install commands: the only module that makes them, for the program, its errors and its hints.

While PUBLISHED is false, heald owns no name on the package index, and a stranger may register one. A command then names
folders of heald's repository: the distribution, and each of heald's that it needs. pip asks the index for none of them,
because a folder fixes the distribution of its name. Libraries of other projects always have their own names.

A hint of a program that was installed from wheels names wheels instead: its reader may have no repository. A path of a
wheel fixes its distribution, too, and those of heald's that it needs are named with it unless they are installed.

A name that a file states becomes part of a command only if this table or the installed packages have it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

PUBLISHED = False  # true once heald owns the names below on the package index
CORE, META = "heald-core", "heald"
NAME = "(?ai)[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?"  # of a distribution (PEP 503)


class OwnDistribution(NamedTuple):
    """A distribution of heald's.

    `folder`: Its place in the repository.
    `needs`: The distributions of heald's that it requires.
    `plugin`: The id of its plugin; empty for a library.
    `commands`: The commands that the plugin brings.
    `extras`: The distributions of heald's that each extra brings.
    `ops`: Patterns of the ops that it alone brings, for a graph that has one where the distribution is not installed.
    """

    folder: str
    needs: tuple[str, ...] = (CORE,)
    plugin: str = ""
    commands: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    ops: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The folder as a path that pip takes for no name."""
        return self.folder if self.folder == "." else f"./{self.folder}"


DISTRIBUTIONS = {
    META: OwnDistribution(
        ".", (CORE, "heald-cpu", "heald-eager", "heald-onednn", "heald-saved-model", "heald-simplify", "heald-tf-ops",
              "heald-tools"),
        extras=MappingProxyType({
            "special": (), "opencl": ("heald-opencl",), "gpu": ("heald-cuda",), "mlir": ("heald-mlir",),
            "text": ("heald-tf-text",), "forests": ("heald-decision-forests",),
            "images": (), "audio": (), "parquet": (), "serve": ("heald-serve",), "report": ("heald-report",),
            "all": ("heald-opencl", "heald-cuda", "heald-mlir", "heald-tf-text", "heald-decision-forests",
                    "heald-serve", "heald-report")})),
    CORE: OwnDistribution("core", (), "heald"),
    "heald-client": OwnDistribution("plugins/client", (), extras=MappingProxyType({"grpc": ()})),
    "heald-cpu": OwnDistribution("device_cpu", (CORE, "heald-tf-ops"), "cpu"),
    "heald-cuda": OwnDistribution("device_gpu", (CORE, "heald-kernel-text"), "cuda",
                                  extras=MappingProxyType({"libraries": ()})),
    "heald-decision-forests": OwnDistribution("plugins/decision_forests", plugin="decision_forests",
                                              ops=("SimpleML*",)),
    "heald-eager": OwnDistribution("plugins/eager", plugin="eager"),
    "heald-opencl": OwnDistribution("device_opencl", (CORE, "heald-kernel-text"), "opencl"),
    "heald-conformance": OwnDistribution("conformance", (CORE, "heald-cpu")),
    "heald-kernel-text": OwnDistribution("plugins/kernel_text", (CORE, "heald-tf-ops")),
    "heald-mlir": OwnDistribution("plugins/mlir", (CORE, "heald-eager"), "mlir", ("tfg",)),
    "heald-onednn": OwnDistribution("plugins/onednn", (CORE, "heald-tf-ops"), "onednn"),
    "heald-ray": OwnDistribution("plugins/ray", (CORE, "heald-tools"), "ray", extras=MappingProxyType({
        "data": (), "serve": ("heald-serve",)})),
    "heald-report": OwnDistribution("plugins/report", (CORE, "heald-tools"), "report", ("report", "view")),
    "heald-saved-model": OwnDistribution("plugins/saved_model", plugin="saved_model"),
    "heald-serve": OwnDistribution("plugins/serve", plugin="serve", commands=("serve",)),
    "heald-sim": OwnDistribution("plugins/sim", (CORE, "heald-cpu"), "sim"),
    "heald-simplify": OwnDistribution("plugins/simplify", plugin="simplify"),
    "heald-tf-ops": OwnDistribution("plugins/tf_ops", plugin="tf_ops"),
    "heald-tf-text": OwnDistribution("plugins/tf_text", plugin="tf_text", ops=(
        "CaseFoldUTF8", "ConstrainedSequence", "FastBertNormalize", "FindSourceOffsets", "MaxSpanningTree",
        "NormalizeUTF8*", "PhraseTokenize", "RegexSplitWithOffsets", "RougeL", "SentenceFragments*", "Sentencepiece*Op",
        "TFText>*", "TokenizerFromLogits", "*TokenizeWithOffsets")),
    "heald-tools": OwnDistribution("plugins/tools", plugin="tools",
                                   commands=("run", "bench", "trace", "diff", "scan", "doctor", "new")),
}
COMMANDS = {command: name for name, row in DISTRIBUTIONS.items() for command in row.commands}
PLUGINS = {row.plugin: name for name, row in DISTRIBUTIONS.items() if row.plugin}


class Library(NamedTuple):
    """A library of another project that kernels need, and that their plugin does not require.

    `name`: Its name in texts.
    `module`: The module that is imported.
    `requirement`: The distribution to install.
    """

    name: str
    module: str
    requirement: str

    def lack(self) -> str | None:
        """Return the text that says that the library is not installed, with the command, or None."""
        return None if is_importable(self.module) else f"it needs {self.name}: {install_hint(self.requirement)}"


@cache
def is_importable(module: str) -> bool:
    """True when an import would find the module. Nothing is imported, and the answer is kept."""
    from importlib.util import find_spec

    return sys.modules.get(module) is not None or find_spec(module) is not None


def install_hint(*requirements: str, upgrade: bool = False) -> str:
    """Return the command that installs these here, and the place where it works.

    It is `install_command` for a published heald and one of a repository, else the command for wheels.
    """
    if PUBLISHED or not any(map(_is_ours, requirements)):
        return install_command(*requirements, upgrade=upgrade)
    if is_in_repository():
        command = install_command(*requirements, upgrade=upgrade)
        return f"{command} (in {'the newest state of ' if upgrade else ''}heald's repository)"
    command = _wheel_command(requirements, upgrade=upgrade)
    return f"{command} (in a folder with {'newer' if upgrade else 'the'} wheels of heald)"


@cache
def is_in_repository() -> bool:
    """True where this module is part of heald's repository, and not of an installed wheel."""
    from pathlib import Path

    return (Path(__file__).parents[4] / "device_cpu" / "pyproject.toml").is_file()


def _wheel_command(requirements: Iterable[str], *, upgrade: bool) -> str:
    """The pip command with the wheels of distributions of heald's, and of those that they need and that are missing."""
    version_of_core = sys.modules["heald"].__version__  # `runtime.version` is a room beside this one
    requested_names = {text.partition("[")[0] for text in requirements}
    wheels = []
    for name, suffix in _with_needs([text for text in requirements if _is_ours(text)]).items():
        if name in requested_names or not is_importable(_package_of(name)):
            version = "*" if upgrade else f"{version_of_core}-py3-none-any"
            wheels.append(f"./{name.replace('-', '_')}-{version}.whl{suffix}")
    others = [text for text in requirements if not _is_ours(text)]
    if upgrade:  # the shell is to find the version
        return " ".join(["pip install -U", *wheels])
    return _pip(*wheels, *others)


def _package_of(name: str) -> str:
    """The package of a distribution of heald's; core's for the one without any."""
    return "heald" if name in (CORE, META) else name.replace("-", "_")


def install_command(*requirements: str, upgrade: bool = False) -> str:
    """Return the pip command that installs distributions of heald or of other projects, each `NAME[EXTRA,...]`."""
    if PUBLISHED:
        return _pip(*["-U"] * upgrade, *requirements)
    ours = [text for text in requirements if _is_ours(text)]
    others = [text for text in requirements if text not in ours]
    return _pip(*["-U"] * (upgrade and not ours), *_folders(ours), *others)


def install_folder_command(path: str) -> str:
    """Return the pip command that installs the plugin in a folder of the user's, in place."""
    return _pip("-e", path)


def plugin_hint(plugin: str) -> str | None:
    """Return the command that installs a plugin of heald's, or None for a plugin of another project."""
    return install_hint(PLUGINS[plugin]) if plugin in PLUGINS else None


def plugin_of_op(op: str) -> str | None:
    """Return the id of the plugin of heald's that alone brings this op, or None."""
    from fnmatch import fnmatchcase

    return next((row.plugin for row in DISTRIBUTIONS.values() if any(fnmatchcase(op, text) for text in row.ops)), None)


def extra_of_plugin(plugin: str) -> str | None:
    """Return the extra that brings a plugin of heald's, as pip writes it, such as "heald[text]"; None without one."""
    name = PLUGINS.get(plugin)
    extras = (extra for extra, names in DISTRIBUTIONS[META].extras.items() if name in names and extra != "all")
    return next((f"{META}[{extra}]" for extra in extras), None)


def brings_named_ops(plugin: str) -> bool:
    """Return True for a plugin of heald's that brings the ops of its patterns alone, and no op set."""
    return any(row.plugin == plugin and row.ops for row in DISTRIBUTIONS.values())


def named_hint(name: str, installed: Iterable[str] = ()) -> str | None:
    """Return the command that installs the distribution `name`, which a file states, or None.

    None stands for a name that neither this table nor `installed`, the names of installed distributions, has. An
    installed distribution is upgraded.
    """
    spellings = {normalized_name(text): text for text in installed if re.fullmatch(NAME, text)}
    key = normalized_name(name)
    if key in DISTRIBUTIONS:
        return install_hint(key, upgrade=key in spellings)
    return install_hint(spellings[key], upgrade=True) if key in spellings else None


def uninstall_hint(name: str) -> str | None:
    """Return the command that uninstalls an installed distribution, or None for a name that none can have."""
    return f"pip uninstall {name}" if re.fullmatch(NAME, name) else None


def normalized_name(name: str) -> str:
    """Return the name by which distributions are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_ours(requirement: str) -> bool:
    return requirement.partition("[")[0] in DISTRIBUTIONS


def _folders(requirements: Iterable[str]) -> list[str]:
    """The folders of these distributions and of all of heald's that they need, in the order of the table."""
    return [f"{DISTRIBUTIONS[name].path}{suffix}" for name, suffix in _with_needs(requirements).items()]


def _with_needs(requirements: Iterable[str]) -> dict[str, str]:
    """These distributions and all of heald's that they need, in the order of the table, each with its extras."""
    suffixes: dict[str, str] = {}
    waiting = [*requirements]
    while waiting:
        name, bracket, extras = waiting.pop().partition("[")
        if name not in suffixes or bracket:
            suffixes[name] = bracket + extras
            row = DISTRIBUTIONS[name]
            waiting += row.needs
            waiting += (need for extra in extras.rstrip("]").split(",") if extra for need in row.extras[extra])
    return {name: suffixes[name] for name in DISTRIBUTIONS if name in suffixes}


def _pip(*words: str) -> str:
    from shlex import quote

    return " ".join(["pip install", *map(quote, words)])
