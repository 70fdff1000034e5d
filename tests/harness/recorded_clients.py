"""Recorded clients of model servers: their requests as bytes, the answers, and a server of the same models."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from builders.graphs import const, node, placeholder
from harness.serve_models import settings_of
from heald.api import dtypes
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump
from heald_serve.models.model_config import ModelConfig
from heald_serve.server import ModelServer

DATA = Path(__file__).parents[1] / "data" / "serving_clients"
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "saved_model"
CLIENTS = ("serving_api", "triton", "tutorial")
CLASSES = 1000


def write_picture_network(file: Path) -> None:
    """A network with the inputs and outputs of an image classifier, and hardly a weight."""
    weights = np.linspace(-1, 1, 3 * CLASSES, dtype=np.float32).reshape(3, CLASSES)
    dump(Graph([placeholder("x", (None, 224, 224, 3)), const("axes", [1, 2], np.int32), const("weights", weights),
                node("means", "Mean", "x", "axes", Tidx=dtypes.int32), node("y", "MatMul", "means", "weights")]), file)


def start_recorded_server(folder: Path) -> ModelServer:
    """A server of half_plus_two, text, digits and picture. The caller closes it."""
    write_picture_network(folder / "picture.pb")
    models = [ModelConfig("half_plus_two", DATA / "half_plus_two"), ModelConfig("text", DATA / "text"),
              ModelConfig("digits", DIGITS, is_single=True),
              ModelConfig("picture", folder / "picture.pb", is_single=True)]
    server = ModelServer(settings_of({}, models=models, grpc_port=0, max_num_load_retries=0))
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server


def write_recording(client: str, exchanges: list[dict[str, Any]]) -> None:
    file = zipfile.ZipInfo(f"{client}.json")
    file.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(DATA / f"{client}.zip", "w") as archive:
        archive.writestr(file, json.dumps(exchanges), compresslevel=9)


def read_recording(client: str) -> list[dict[str, Any]]:
    """The exchanges; bytes are texts in Latin-1."""
    with zipfile.ZipFile(DATA / f"{client}.zip") as archive:
        exchanges: list[dict[str, Any]] = json.loads(archive.read(f"{client}.json"))
    return exchanges
