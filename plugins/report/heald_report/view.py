"""The command: heald view. The page of heald report, with answers of the loaded model."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from heald.api.cli import add_device, add_input, add_model, say, ticking

EPILOG = """\
examples:
  heald view model.pb                         the address of the page is printed; Ctrl-C ends the server
  heald view model.pb --port 8765 --no-run    at this port, without a timeline"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="of 127.0.0.1 (a free one)")
    add_input(parser, "feed an input of the timeline's run; other inputs are made up")
    parser.add_argument("--no-run", dest="run_model", action="store_false",
                        help="run nothing at the start: the page has no times and no memory")
    parser.add_argument("--title", metavar="TEXT", help="of the page, instead of the file's name")
    add_device(parser)


def view(args: Namespace) -> int:
    from heald.errors import of_system

    from .inspection import Inspector
    from .page import page_bytes
    from .report import load_graph_model, run_model
    from .view_server import ADDRESS, ViewServer

    model = load_graph_model(args)
    run = run_model(args, model)
    inspector = Inspector(model)
    with ticking("drawing"):
        page = page_bytes(model, run.title, run.trace, live=inspector.form_data(), feeds=run.fed_tensors)
    try:
        server = ViewServer(page, inspector, args.port)
    except OSError as error:
        raise of_system(error, f"{ADDRESS}:{args.port}") from error
    with server:
        say((f"{run.note}\n" if run.note else "") + f"open {server.address}  (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
    return 0


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 1 << 16):
        raise ArgumentTypeError(f"'{text}' is no port from 0 to 65535")
    return int(text)
