"""The models to serve: names, base paths, version policies and labels, from options or a ModelServerConfig file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from heald.errors import InvalidArgument, Location, Unimplemented

from ..messages import read_text_message

LATEST, ALL, SPECIFIC = "latest", "all", "specific"
REMOTE_PREFIXES = ("gs://", "s3://", "hdfs://", "http://", "https://")


class VersionPolicy(NamedTuple):
    """The versions that are wanted: the `latest_count` latest, all, or `versions`."""

    kind: str = LATEST
    latest_count: int = 1
    versions: frozenset[int] = frozenset()

    def choose(self, present: Collection[int]) -> list[int]:
        """The wanted versions among the present ones, the highest first."""
        ordered = sorted(present, reverse=True)
        if self.kind == SPECIFIC:
            return [version for version in ordered if version in self.versions]
        return ordered if self.kind == ALL else ordered[: self.latest_count]


class ModelConfig(NamedTuple):
    """A model. `is_single`: `base_path` is a model itself, version 1, and no folder of versions."""

    name: str
    base_path: Path
    policy: VersionPolicy = VersionPolicy()
    labels: Mapping[str, int] = MappingProxyType({})
    is_single: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """The values for another process: a proxy cannot be pickled."""
        return ModelConfig, (*self._replace(labels=dict(self.labels)),)


def local_path(text: str) -> Path:
    """Raises Unimplemented for an address of a remote store."""
    if text.lower().startswith(REMOTE_PREFIXES):
        scheme = text.partition("://")[0]
        tool = {"gs": "gcloud storage cp -r", "s3": "aws s3 cp --recursive"}.get(scheme.lower(), "a copy")
        raise Unimplemented(f"'{text}' is no path of this machine: models are served from files",
                            hint=f"copy the folder first ({tool}), or mount the store, and give that path")
    return Path(text)


def read_model_configs(file: Path) -> tuple[ModelConfig, ...]:
    """The models of a ModelServerConfig in text form. Raises InvalidArgument, NotFound, Unimplemented."""
    return model_configs(read_text_message("ModelServerConfig", file), Location(str(file)))


def model_configs(message: Any, here: Location | None = None) -> tuple[ModelConfig, ...]:
    """The models of a ModelServerConfig. Raises InvalidArgument and Unimplemented; `here` is the place in errors."""
    if message.WhichOneof("config") == "custom_model_config":
        raise Unimplemented("custom_model_config is for servers with code of their own", location=here,
                            hint="list the models in model_config_list")
    configs = tuple(_model_config(config, here) for config in message.model_config_list.config)
    check_names(configs, here)
    return configs


def check_names(configs: Iterable[ModelConfig], location: Location | None = None) -> None:
    """Raises InvalidArgument for two models of one name."""
    names: set[str] = set()
    for config in configs:
        if config.name in names:
            raise InvalidArgument(f"Illegal to list model {config.name} multiple times in config list",
                                  location=location)
        names.add(config.name)


def _model_config(config: Any, here: Location | None) -> ModelConfig:
    if not config.name:
        raise InvalidArgument("a model of the list has no name", location=here)
    if not config.base_path:
        raise InvalidArgument(f"model '{config.name}' has no base_path", location=here)
    if config.model_platform not in ("", "tensorflow") or config.model_type == 2:
        raise InvalidArgument(f"model '{config.name}' has the platform '{config.model_platform}'", location=here,
                              hint='model_platform is "tensorflow"')
    if config.HasField("logging_config") or config.logging_configs:
        raise Unimplemented(f"model '{config.name}' has a logging_config: requests are not collected", location=here,
                            hint="--access_log writes a line for each request")
    base_path = local_path(config.base_path)
    if not base_path.is_absolute():
        raise InvalidArgument(f"Expected model {config.name} to have an absolute path or URI; got base_path()="
                              f"{config.base_path}", location=here)
    return ModelConfig(config.name, base_path, _policy(config, here), dict(config.version_labels))


def _policy(config: Any, here: Location | None) -> VersionPolicy:
    policy = config.model_version_policy
    kind = policy.WhichOneof("policy_choice") or LATEST
    versions = frozenset(policy.specific.versions)
    if kind == SPECIFIC and not versions:
        raise InvalidArgument(f"model '{config.name}' wants specific versions and names none", location=here)
    return VersionPolicy(kind, policy.latest.num_versions or 1, versions)
