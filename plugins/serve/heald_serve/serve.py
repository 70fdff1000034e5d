"""The command: heald serve."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from .options import add_options, given_options

if TYPE_CHECKING:
    from .settings import Settings

EPILOG = """\
examples:
  heald serve model.bef                                  one model, for this machine: port 8501
  heald serve digits=digits/saved_model text=text/       several, by name
  heald serve --rest_api_port=8501 --model_name=digits --model_base_path=/models/digits
  curl -d '{"instances": [1.0, 2.0]}' localhost:8501/v1/models/model:predict"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("model", nargs="*", metavar="MODEL",
                        help="a model, or a folder of its versions; NAME=MODEL names it otherwise than its file")
    add_options(parser)


def serve(args: Namespace) -> int:
    if given_options(args).get("version"):
        return _tell_version()
    from .access_log import report_line
    from .settings import read_settings

    settings = read_settings(args)
    for line in settings.lines:
        report_line(line)
    if settings.workers > 1:
        return _supervise(settings)
    from .server import ModelServer

    server = ModelServer(settings, report_line)
    try:
        server.load()
        names = ", ".join(server.manager.names())
        if server.sockets:
            address = f"http{'s' * (settings.tls is not None)}://{settings.host}:{server.port}"
            report_line(f"serving {names} at {address}/v1/models")
            if settings.options["page"]:
                report_line(f"a page to try them: {address}/")
        server.run()
    finally:
        server.close()
    return 0


def _supervise(settings: Settings) -> int:
    from .access_log import report_line
    from .workers.supervisor import Supervisor

    supervisor = Supervisor(settings, report_line)
    try:
        supervisor.run()
    finally:
        supervisor.close()
    return 0


def _tell_version() -> int:
    import heald
    from heald.api.cli import say

    say(f"TensorFlow ModelServer: heald-serve {heald.__version__}\nTensorFlow Library: heald {heald.__version__}")
    return 0
