"""Doors of the server: the texts of its options' files, bodies over HTTP, and warm-up records.

No socket is opened. The signatures echo their inputs, so that an answer is written from whatever came in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from heald.api import TensorInfo, TensorMetadata, dtypes
from heald_serve.batching_parameters import read_batching_parameters
from heald_serve.messages import read_text_message
from heald_serve.models.model_config import read_model_configs
from heald_serve.models.served_model import DEFAULT_SIGNATURE, PREDICT, ServedSignature, check_inputs
from heald_serve.models.warmup import FILE, masked_crc32c, warm_up
from heald_serve.rest.examples import example_strings
from heald_serve.rest.json_text import parse_object
from heald_serve.rest.request_tensors import request_tensors
from heald_serve.rest.response_text import columns_body, rows_body
from heald_serve.rest.rest_api import signature_name
from heald_serve.settings import TlsTexts
from heald_serve.tls import server_context
from heald_serve.v2.binary_body import inflate, parse_body, read_inputs, write_outputs

from .samples import SINGLE, Sample, write_files

BODY, LENGTH = "body", "length"  # the files of a sample over HTTP
MODELS, BATCHING, MONITORING, TLS = "models.config", "batching.config", "monitoring.config", "tls.config"
_SIGNATURES: tuple[Mapping[str, str], ...] = (
    {"x": "float32"}, {"a": "int32", "s": "string"}, {"z_bytes": "string"},
    {"b": "bool", "u": "uint64", "d": "float64"})


@cache
def echoes() -> dict[str, ServedSignature]:
    """Signatures of several types by name; the default takes floats."""
    signatures = {}
    for number, types in enumerate(_SIGNATURES):
        infos = {key: TensorInfo(f"{key}:0", TensorMetadata(dtypes.named(kind), None)) for key, kind in types.items()}
        name = f"s{number}" if number else DEFAULT_SIGNATURE
        signatures[name] = ServedSignature(name, PREDICT, infos, infos, lambda arrays, _: arrays)
    return signatures


def configs(sample: Sample, folder: Path) -> None:
    """A file of an option in text form."""
    write_files(sample, folder)
    for name in sample:
        _CONFIG_READERS[name](folder / name)


def _read_tls(file: Path) -> None:
    config = read_text_message("SSLConfig", file)
    server_context(TlsTexts(config.server_key, config.server_cert, config.custom_ca, config.client_verify))


_CONFIG_READERS = {MODELS: read_model_configs, BATCHING: read_batching_parameters, TLS: _read_tls,
                   MONITORING: partial(read_text_message, "MonitoringConfig")}


def rest_body(sample: Sample, _folder: Path) -> None:
    """A body of REST: a predict body becomes an answer, examples become strings."""
    document = parse_object(sample[SINGLE])
    signature = echoes().get(signature_name(document))
    if signature is None and "examples" in document:
        example_strings(document, "classify")
        return
    signature = signature or echoes()[DEFAULT_SIGNATURE]
    arrays, are_rows = request_tensors(document, signature.inputs)
    check_inputs(signature, arrays)
    parse_object((rows_body if are_rows else columns_body)(arrays))


def binary_body(sample: Sample, _folder: Path) -> None:
    """A body of the Open Inference Protocol with the header of its length, packed or not."""
    body: Any = sample[BODY]
    if body[:1] == b"\x78":
        body = inflate(body)
    parsed = parse_body(body, sample[LENGTH] or None)
    write_outputs(read_inputs(parsed), parsed)


def repair_length(rng: Random, sample: Sample) -> Sample:
    """The sample with the length of its JSON in four of five cases, so that the mutant comes to its tensors."""
    if not sample[LENGTH] or rng.random() < 0.2:
        return sample
    try:
        _, end = json.JSONDecoder().raw_decode(sample[BODY].decode("latin-1"))
    except (ValueError, RecursionError):
        return sample
    return {**sample, LENGTH: str(end).encode()}


def warmup(sample: Sample, folder: Path) -> None:
    """A PredictionLog in a record with sound checksums, and the file of records as it is."""
    message = sample["log.pb"]
    length = len(message).to_bytes(8, "little")
    record = length + masked_crc32c(length) + message + masked_crc32c(message)
    write_files({str(FILE): record + sample["records"]}, folder)
    warm_up(folder, echoes(), 1)
