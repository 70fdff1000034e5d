"""Config: the settings of a process, their sources, and the trust in files that were found.

Settings are typed and closed: an unknown key is an error that names the nearest one. Each setting has an origin, down
to the line of its file. A found file may come from a stranger: it can load no code, and sets harmless settings only.
The room reads files; it writes one file alone, the list of trusted files. It loads no plugin.

`config`: Config: the sections, the order of sources, the settings that a found file may make.
`schema`: Reading layers of settings into dataclasses by their type hints.
`sources`: The layers of a process: argument, environment variables, files.
`search`: The files that are found: near the working folder, and the user's own.
`file`: TOML files, read within bounds, with the line of each setting.
`trust`: The list of files that the user trusts.
`placement`, `debug`, `files`, `limits`: The sections of these names.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .config import Config as Config
    from .config import EagerConfig as EagerConfig
    from .config import load_config as load_config
    from .schema import FoundFile as FoundFile
    from .schema import Setting as Setting
    from .sources import FILE_VARIABLE as FILE_VARIABLE
    from .sources import gather_layers as gather_layers

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".config": ("Config", "EagerConfig", "load_config"),
        ".schema": ("FoundFile", "Setting"),
        ".sources": ("FILE_VARIABLE", "gather_layers"),
    })
