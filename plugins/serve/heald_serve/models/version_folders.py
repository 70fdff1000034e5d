"""The versions of a model on disk: the folders below its base path whose names are numbers."""

from __future__ import annotations

from pathlib import Path

from heald.errors import NotFound, of_system

from .model_config import ModelConfig

LARGEST_VERSION = (1 << 63) - 1


def list_versions(base_path: Path) -> dict[int, Path]:
    """The folders by version. Of names with one value, such as 1 and 01, the last counts.

    Raises NotFound for a base path that does not exist, and the errors of reading it.
    """
    try:
        names = sorted(child.name for child in base_path.iterdir() if child.is_dir())
    except FileNotFoundError:
        raise NotFound(f"Could not find base path {base_path} for servable") from None
    except OSError as error:
        raise of_system(error, base_path) from error
    return {int(name): base_path / name for name in names if is_version(name)}


def is_version(name: str) -> bool:
    """True for a whole number of 63 bits."""
    return name.isascii() and name.isdecimal() and len(name) <= 64 and int(name) <= LARGEST_VERSION


def has_versions(path: Path) -> bool:
    """True for a folder with a folder of a version."""
    try:
        return any(is_version(child.name) and child.is_dir() for child in path.iterdir())
    except OSError:
        return False


def wanted_versions(config: ModelConfig) -> dict[int, Path]:
    """The wanted versions, the highest first. Raises as `list_versions`."""
    if config.is_single:
        return {1: config.base_path}
    folders = list_versions(config.base_path)
    return {version: folders[version] for version in config.policy.choose(folders)}
