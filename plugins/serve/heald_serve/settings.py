"""The settings of a server: from the options, the environment and the files that options name.

Three starts differ. `heald serve MODEL` is for one's own machine: loopback addresses, the ports 8500 and 8501. With
TensorFlow Serving's options it listens as that does, on all addresses, on the ports of its options. MODEL_NAME or
MODEL_BASE_PATH alone stand for the command of its container image.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from heald.errors import InvalidArgument, of_system

from .batching_parameters import BatchingParameters, read_batching_parameters
from .messages import read_text_message
from .models.load_version import LoadSettings
from .models.model_config import ModelConfig, check_names, local_path, read_model_configs
from .models.model_manager import ManagerSettings
from .models.version_folders import has_versions
from .options import accepted_lines, check_refused, given_options, with_defaults

LOOPBACK, ALL_ADDRESSES = "127.0.0.1", "0.0.0.0"  # noqa: S104 - TensorFlow Serving's own default
DEFAULT_METRICS_PATH = "/monitoring/prometheus/metrics"
GRPC_PORT, REST_PORT = 8500, 8501
MOST_WORKERS = 256


class TlsTexts(NamedTuple):
    """Key, certificate and further authorities as PEM texts."""

    key: str
    certificate: str
    authorities: str = ""
    verifies_clients: bool = False


class Settings(NamedTuple):
    """`options`: the values of all options. `lines`: warnings for the start.

    `start`: of the server, on the clock of `time.monotonic`, which its processes share.
    """

    options: Mapping[str, Any]
    models: Sequence[ModelConfig]
    host: str
    rest_port: int | None
    lines: Sequence[str] = ()
    metrics_path: str | None = None
    batching: BatchingParameters | None = None
    tls: TlsTexts | None = None
    token: str = ""
    grpc_port: int | None = None
    start: float = 0.0

    @property
    def workers(self) -> int:
        """The processes that serve."""
        return int(self.options["workers"])

    @property
    def drain_seconds(self) -> float:
        return float(self.options["drain_timeout_in_ms"]) / 1000

    @property
    def silence_seconds(self) -> float:
        """The longest silence of a worker's event loops; 0 for any."""
        return float(self.options["max_worker_silence_in_ms"]) / 1000

    @property
    def run_threads(self) -> int:
        """The threads of a run; 0 leaves them to heald."""
        return int(self.options["tensorflow_session_parallelism"] or self.options["tensorflow_intra_op_parallelism"])

    @property
    def load(self) -> LoadSettings:
        runs = max(self.options["num_request_iterations_for_warmup"], 1) if self.options["enable_model_warmup"] else 0
        tags = [tag for tag in self.options["saved_model_tags"].split(",") if tag]
        return LoadSettings(device=self.options["device"] or None, tags=tags, warmup_runs=runs)

    @property
    def manager(self) -> ManagerSettings:
        return ManagerSettings(self.options["max_num_load_retries"],
                               max(self.options["load_retry_interval_micros"], 0) / 1e6,
                               self.options["allow_version_labels_for_unavailable_models"])

    @property
    def rest_seconds(self) -> float | None:
        milliseconds = self.options["rest_api_timeout_in_ms"]
        return milliseconds / 1000 if milliseconds > 0 else None

    @property
    def allowed_hosts(self) -> list[str] | None:
        """The names in the Host header; None for all."""
        from .http.guards import LOOPBACK_NAMES

        names = [name.strip() for name in self.options["allowed_hosts"].split(",") if name.strip()]
        if "*" in names:
            return None
        if names or is_loopback(self.host):
            return [*names, *LOOPBACK_NAMES]
        return None


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def read_settings(args: Namespace, environ: Mapping[str, str] = os.environ) -> Settings:
    """Raises InvalidArgument and Unimplemented for options that do not fit, and the errors of reading their files."""
    values = given_options(args)
    check_refused(values)
    lines = [*accepted_lines(values)]
    options = with_defaults(values)
    if args.model:
        models: Sequence[ModelConfig] = _own_models(args.model, values)
        host, rest_port = LOOPBACK, values.get("rest_api_port", REST_PORT)
        options["max_num_load_retries"] = values.get("max_num_load_retries", 0)  # a typing error is told at once
    else:
        models, rest_port = _listed_models(values, options, environ)
        host = ALL_ADDRESSES
        if not options["host"]:
            lines.append("listening on all addresses, as TensorFlow Serving does; --host=127.0.0.1 is for this machine")
    check_names(models)
    _check(options, values)
    if rest_port and rest_port == options["port"]:
        lines.append(f"--rest_api_port and --port are both {rest_port}: the REST interface is skipped")
        rest_port = 0
    return Settings(options, models, options["host"] or host, rest_port or None, lines,
                    _metrics_path(options), _batching(options), _tls(options), _token(options), options["port"] or None,
                    monotonic())


def _own_models(texts: Sequence[str], values: Mapping[str, Any]) -> list[ModelConfig]:
    if len(texts) > 1 and "model_name" in values:
        raise InvalidArgument("--model_name is for one model", hint="write NAME=MODEL for each of several")
    return [_own_model(text, values.get("model_name")) for text in texts]


def _own_model(text: str, name: str | None) -> ModelConfig:
    """MODEL, or NAME=MODEL where no file has this name."""
    prefix, equals, path_text = text.partition("=")
    if equals and prefix and "/" not in prefix and not Path(text).exists():
        name, text = prefix, path_text
    path = local_path(text)
    return ModelConfig(name or path.resolve().stem, path, is_single=not has_versions(path))


def _listed_models(
    values: Mapping[str, Any], options: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Sequence[ModelConfig], int]:
    """The models of TensorFlow Serving's options, or of its container's environment, and the port of REST."""
    if options["model_config_file"]:
        return read_model_configs(Path(options["model_config_file"])), options["rest_api_port"]
    name, base_path = options["model_name"], options["model_base_path"]
    if base_path:
        path = local_path(base_path)
        return [ModelConfig(name, path)], options["rest_api_port"]
    if "MODEL_NAME" in environ or "MODEL_BASE_PATH" in environ:
        name = values.get("model_name", environ.get("MODEL_NAME", "model"))
        path = local_path(environ.get("MODEL_BASE_PATH", "/models")) / name
        return [ModelConfig(name, path)], values.get("rest_api_port", REST_PORT)
    raise InvalidArgument("no model to serve", hint="heald serve MODEL, or --model_base_path or --model_config_file")


def _check(options: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    names = ("tensorflow_session_parallelism", "tensorflow_intra_op_parallelism", "tensorflow_inter_op_parallelism")
    if all(options[name] for name in names):
        raise InvalidArgument(f"--{', --'.join(names)} exclude each other", hint="give the last two")
    for name in ("port", "rest_api_port"):
        if not 0 <= options[name] < 1 << 16:
            raise InvalidArgument(f"--{name} is {options[name]}, not a port of 0 to 65535")
    for name in ("workers", "rest_api_num_threads", "max_connections", "max_body_bytes", "request_read_timeout_in_ms"):
        if options[name] < 1:
            raise InvalidArgument(f"--{name} is {options[name]}, not 1 or more")
    for name in (*names, "max_queued_requests", "max_queue_time_in_ms", "max_num_load_retries", "num_load_threads",
                 "drain_timeout_in_ms", "max_worker_silence_in_ms"):
        if options[name] < 0:
            raise InvalidArgument(f"--{name} is {options[name]}, not 0 or more")
    if options["workers"] > MOST_WORKERS:
        raise InvalidArgument(f"--workers is {options['workers']}, not {MOST_WORKERS} or less")
    if options["workers"] > 1 and options["grpc_socket_path"]:
        raise InvalidArgument("--grpc_socket_path is for one process, and --workers for several",
                              hint="leave one of them out")
    if options["access_log"] not in ("none", "text", "json"):
        raise InvalidArgument(f"--access_log is '{options['access_log']}', not none, text or json")
    if options["batching_parameters_file"] and not options["enable_batching"]:
        raise InvalidArgument("server_options.batching_parameters_file was set, but enable_batching was not")


def _metrics_path(options: Mapping[str, Any]) -> str | None:
    if not options["monitoring_config_file"]:
        return None
    config = read_text_message("MonitoringConfig", Path(options["monitoring_config_file"])).prometheus_config
    return (config.path or DEFAULT_METRICS_PATH) if config.enable else None


def _batching(options: Mapping[str, Any]) -> BatchingParameters | None:
    if not options["enable_batching"]:
        return None
    file = options["batching_parameters_file"]
    return read_batching_parameters(Path(file)) if file else BatchingParameters(
        thread_pool_name="model_server_batch_threads")


def _tls(options: Mapping[str, Any]) -> TlsTexts | None:
    if not options["ssl_config_file"]:
        return None
    config = read_text_message("SSLConfig", Path(options["ssl_config_file"]))
    if not (config.server_key and config.server_cert):
        raise InvalidArgument("an SSLConfig has server_key and server_cert, as PEM texts")
    return TlsTexts(config.server_key, config.server_cert, config.custom_ca, config.client_verify)


def _token(options: Mapping[str, Any]) -> str:
    if not options["token_file"]:
        return ""
    file = Path(options["token_file"])
    try:
        token = file.read_text("utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            raise of_system(error, file) from error
        raise InvalidArgument(f"'{file}' is no text") from None
    if not token:
        raise InvalidArgument(f"'{file}' has no token in its first line")
    return token
