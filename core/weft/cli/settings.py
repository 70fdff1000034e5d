"""weft config show: the settings that count here, and where each was made."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from .arguments import command

EPILOG = """\
A setting is taken from the first of: environment WEFT_SECTION__KEY, the file that $WEFT_CONFIG names, the nearest
weft.toml, [tool.weft] in the nearest pyproject.toml, the user's own config file."""


def add(commands: Any) -> None:
    parser = command(commands, "config", show_config, "show the settings and where each was made", EPILOG)
    parser.add_argument("action", choices=("show",), help="print the settings that count in this folder")
    parser.add_argument("--origin", action="store_true", help="also where each setting was made")
    parser.add_argument("--json", action="store_true", help="print JSON")


def show_config(args: Namespace) -> int:
    from ..config import load_config
    from .table import show, show_json

    rows = load_config().origins()
    if args.json:
        show_json([row._asdict() for row in rows])
        return 0
    texts = [{"key": row.key, "value": _text(row.value), "origin": row.origin} for row in rows]
    show(texts, ("key", "value", "origin") if args.origin else ("key", "value"), wrap=("value",))
    return 0


def _text(value: Any) -> str:
    """As it is written in TOML, nearly: what is not set has no value there."""
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False, default=str)
