"""The description of the meta distribution on the package index: the README, without the relative links of a checkout.

With an address of the project, links lead to the files of this version; without one they become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)")
PICTURE = re.compile(r"^<picture>.*?</picture>\n+", re.DOTALL | re.MULTILINE)


class IndexDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        address = metadata.get("urls", {}).get("Repository", "")
        files = f"{address}/blob/v{metadata['version']}" if address else ""
        metadata["readme"] = {"content-type": "text/markdown", "text": index_description(text, files)}


def index_description(text: str, files: str) -> str:
    """The text without pictures; its relative links lead below the address `files`, and are plain text without one."""
    return LINK.sub(rf"[\1]({files}/\2)" if files else r"\1", PICTURE.sub("", text))
