"""The files of a deployment: their commands are the server's, and their times fit its times."""

from __future__ import annotations

import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
from heald_serve.http.application import PROBES
from heald_serve.settings import read_settings
from heald_serve.workers.supervisor import KILL_SECONDS

from tests.serve.test_options import parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "serve"
INSTRUCTIONS = ("FROM", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT")


def read(name):
    return (FOLDER / name).read_text("utf-8")


def container():
    """The texts of the Containerfile by instruction."""
    rows = [line.partition(" ")[::2] for line in read("Containerfile").splitlines()]
    assert len(rows) <= 10
    assert tuple(name for name, _ in rows) == INSTRUCTIONS
    return dict(rows)


def settings_of_container(words=(), **environ):
    command = json.loads(container()["ENTRYPOINT"])
    assert command[:2] == ["heald", "serve"]
    environ = dict(pair.split("=") for pair in container()["ENV"].split()) | environ
    return read_settings(parse(*command[2:], *words), environ)


def stop_seconds(settings):
    return settings.options["drain_timeout_in_ms"] / 1000 + KILL_SECONDS


@pytest.mark.parametrize("name", ["Containerfile", "heald-serve.service", "kubernetes.yaml"])
def test_the_page_has_the_file(name):
    assert f"```\n{read(name)}```" in (ROOT / "docs" / "serve.md").read_text("utf-8")


def test_the_container_serves_a_mounted_model_without_root():
    settings = settings_of_container()
    assert [(model.name, str(model.base_path)) for model in settings.models] == [("model", "/models/model")]
    assert container()["EXPOSE"] == f"{settings.grpc_port} {settings.rest_port}"
    assert int(container()["USER"]) > 0
    _, _, command = container()["HEALTHCHECK"].partition("CMD ")
    *_, program = json.loads(command)
    compile(program, "healthcheck", "exec")
    assert re.search(r"localhost:(\d+)(/\w+)'", program).groups() == (str(settings.rest_port), "/readyz")


def test_the_unit_gives_the_server_time_to_drain():
    unit = ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str
    unit.read_string(read("heald-serve.service"))
    service = unit["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("heald", "serve")
    options = parse(*words)
    assert options.model_config_file
    assert int(service["TimeoutStopSec"]) > stop_seconds(settings_of_container())
    assert service["KillMode"] == "mixed"  # the parent alone is told to end, and tells the workers


def test_the_deployment_probes_the_server_and_gives_it_time_to_drain():
    yaml = pytest.importorskip("yaml")
    deployment, service = yaml.safe_load_all(read("kubernetes.yaml"))
    pod = deployment["spec"]["template"]["spec"]
    (heald,) = pod["containers"]
    settings = settings_of_container(heald["args"], **{row["name"]: row["value"] for row in heald["env"]})
    assert (settings.models[0].name, settings.workers) == ("digits", 2)
    pause = int(heald["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > stop_seconds(settings) + pause
    ports = {row["name"]: row["containerPort"] for row in heald["ports"]}
    assert ports == {"grpc": settings.grpc_port, "http": settings.rest_port}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert heald[probe]["httpGet"]["path"] in PROBES
        assert heald[probe]["httpGet"]["port"] == "http"
    assert {row["targetPort"] for row in service["spec"]["ports"]} == set(ports)
    assert pod["securityContext"]["runAsUser"] == int(container()["USER"])
