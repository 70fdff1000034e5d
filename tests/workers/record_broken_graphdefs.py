"""Records TensorFlow's answers to broken GraphDefs, for tests/tfg.

    PYTHONPATH=tests python -m workers.record_broken_graphdefs --oracle PROGRAM

`workers.tfg_oracle` describes PROGRAM. `KIND-SEED.pb` is a GraphDef, `KIND-SEED.txt` its status and message: 0 for an
accepted graph, 4 for an error of the importer, 7 for one of the verifier. Graphs that end TensorFlow's process are left
out, and so are messages with the text of a tensor, which vary from call to call.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from builders.broken_graphdefs import KINDS, broken_graphdef
from workers.tfg_oracle import DATA, Job, pack

BROKEN = DATA / "tfg/broken.tar.xz"
GRAPHS_OF_A_KIND = 3
_MESSAGE = re.compile(r"(?:msg=|^error: )(.*)", re.DOTALL | re.MULTILINE)


def record(program: str) -> dict[str, bytes]:
    """The files of the archive."""
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = []
        for kind in KINDS:
            for seed in range(GRAPHS_OF_A_KIND):
                source = folder / f"{kind}-{seed}.pb"
                source.write_bytes(broken_graphdef(kind, seed).SerializeToString(deterministic=True))
                jobs.append(Job("import", source, source.with_suffix(".out")))
        lines = "".join(f"{job}\n" for job in jobs)
        statuses = subprocess.run([program, "many"], input=lines, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, check=True).stdout.split()
        for job, status in zip(jobs, statuses, strict=True):
            match = _MESSAGE.search(Path(f"{job.out}.err").read_text("utf-8"))
            message = match[1].strip() if status != "0" and match else ""
            if status in ("0", "4", "7") and "goo.gle/debug" not in message:
                files[job.source.name] = job.source.read_bytes()
                files[job.source.with_suffix(".txt").name] = f"{status}\n{message}".encode()
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True, metavar="PROGRAM")
    files = record(parser.parse_args().oracle)
    pack(BROKEN, files)
    print(f"{len(files) // 2} graphs")


if __name__ == "__main__":
    main()
