"""Ray Serve on this machine, in a folder of hostile modules: facts about it, as JSON in the file of argument 2.

    python -P on_ray_serving.py DIGITS FACTS.json
    python -P on_ray_serving.py DIGITS HOST:PORT deploy

The second form makes the application in a running cluster and ends.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import heald
import heald_ray
import numpy as np
from heald_ray.deployment import Prediction, run_predictions
from heald_serve.models.served_model import DEFAULT_SIGNATURE, signatures_of
from heald_serve.rest.response_text import rows_body

MODEL = Path(sys.argv[1], "frozen.pb")
IMAGES = np.load(Path(sys.argv[1], "test.npz"))["image"]
PORT = 8123
PREDICT = "/v1/models/digits:predict"
MOST_SECONDS = 90
CLIENTS = 24
LARGE_ROWS = 400  # of a request that keeps a replica busy


def ask(path: str, document: Any = None) -> tuple[int, str]:
    body = document if document is None or isinstance(document, bytes) else json.dumps(document).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", body, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait_until(condition: Callable[[], Any]) -> bool:
    end = monotonic() + MOST_SECONDS
    while monotonic() < end:
        if condition():
            return True
        sleep(0.2)
    return False


def deploy(address: str) -> None:
    heald_ray.connect(address)
    from ray import serve

    application = heald_ray.make_application(
        MODEL, name="digits", max_batch_size=8, batch_wait_timeout_s=0.05, max_ongoing_requests=4,
        max_queued_requests=4, autoscaling_config={"min_replicas": 1, "max_replicas": 2, "target_ongoing_requests": 1,
                                                   "upscale_delay_s": 0.5, "downscale_delay_s": 600})
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(application, name="digits", route_prefix="/")


@cache
def loaded_signature() -> Any:
    return signatures_of(heald.load(MODEL))[DEFAULT_SIGNATURE]


def answer_of_one_process(images: Any) -> str:
    signature = loaded_signature()
    [result] = run_predictions([Prediction(signature, {"image": images})])
    assert not isinstance(result, Exception)
    return rows_body(result).decode()


def is_answered(index: int) -> bool:
    """Return whether the answer for one row has its outputs, to the last digits: a BLAS library sums a larger batch
    in another order. A full queue may refuse the request some times."""
    while True:
        status, text = ask(PREDICT, {"instances": IMAGES[index : index + 1].tolist()})
        if status != 503:
            break
        sleep(0.05)
    [ours], [theirs] = (json.loads(body)["predictions"]
                        for body in (text, answer_of_one_process(IMAGES[index : index + 1])))
    return ours.keys() == theirs.keys() and all(np.allclose(ours[name], theirs[name], 1e-4, 1e-7) for name in ours)


def replicas_running(deployment: str = "digits") -> int:
    from ray import serve

    states = serve.status().applications["digits"].deployments[deployment].replica_states
    return int(states.get("RUNNING", 0))


def replica_names(ray: Any, deployment: str) -> set[str]:
    return {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)
            if actor["name"].startswith(f"SERVE_REPLICA::digits#{deployment}#")}


def kill_replicas(ray: Any, deployment: str) -> int:
    """Kill the replicas of a deployment, wait for the next ones, and return the number of the killed."""
    killed = replica_names(ray, deployment)
    for name in killed:
        ray.kill(ray.get_actor(name, "serve"))
    wait_until(lambda: replica_names(ray, deployment) - killed and replicas_running(deployment))
    return len(killed)


def serving_facts(ray: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "many_rows": ask(PREDICT, {"instances": IMAGES[:20].tolist()}) == (200, answer_of_one_process(IMAGES[:20])),
        "status": ask("/v1/models/digits"), "health": ask("/-/healthz"), "absent": ask("/v1/models/other"),
        "malformed": ask(PREDICT, b"{"), "shape": ask(PREDICT, {"instances": [[1.0]]}),
        "other_verb": ask("/v1/models/digits:classify", {})}
    with ThreadPoolExecutor(CLIENTS) as clients:
        facts["single_rows"] = all(clients.map(is_answered, range(CLIENTS)))
        large = {"instances": IMAGES[:LARGE_ROWS].tolist()}
        answers = list(clients.map(lambda _: ask(PREDICT, large), range(2 * CLIENTS)))
        facts["overload"] = Counter(status for status, _ in answers)
        facts["refusals"] = sorted({text.partition("(")[0] for status, text in answers if status == 503})
        load = [clients.submit(ask, PREDICT, large) for _ in range(CLIENTS)]
        facts["scaled"] = wait_until(lambda: replicas_running() == 2 or not load.extend(
            clients.submit(ask, PREDICT, large) for _ in range(4)))
    return facts


def main() -> None:
    heald_ray.connect("local", cpus=3)
    import ray

    address = ray.get_runtime_context().gcs_address
    subprocess.run([sys.executable, "-P", *sys.argv[:2], address, "deploy"], check=True, timeout=MOST_SECONDS)
    from ray import serve

    facts = serving_facts(ray)
    facts["killed_keepers"] = kill_replicas(ray, "digits-files")  # the next one has its files from the node
    for folder in Path(tempfile.gettempdir()).glob("heald-ray-*"):
        shutil.rmtree(folder)  # the node has no files of the model any more, as a new node has none
    facts["killed"] = kill_replicas(ray, "digits")
    facts["again"] = wait_until(lambda: ask("/v1/models/digits")[0] == 200)
    facts["files"] = len(list(Path(tempfile.gettempdir()).glob("heald-ray-*/*/frozen.pb")))
    serve.shutdown()
    facts["left"] = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
    ray.shutdown()
    Path(sys.argv[2]).write_text(json.dumps(facts))


if __name__ == "__main__":
    if sys.argv[3:]:
        deploy(sys.argv[2])
    else:
        main()
