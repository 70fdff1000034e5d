"""TensorFlow Serving's ModelService: the states of versions, and a new list of models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from heald.errors import DeadlineExceeded, HealdError, InvalidArgument, Unknown

from ..messages import message_class
from ..metrics import Metrics
from ..models.model_config import ModelConfig, model_configs
from ..models.model_manager import ModelManager
from ..models.servable import AVAILABLE
from .call_handlers import Method, RpcCall

STATES = {"START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50}
SLICE_SECONDS = 0.02  # of waiting for new models


class ModelService:
    """A thread of the manager loads the models of a new list; a call waits for them."""

    def __init__(self, manager: ModelManager, metrics: Metrics) -> None:
        self._manager, self._metrics = manager, metrics
        self._reloading = asyncio.Lock()  # one list after the other

    def methods(self) -> dict[str, Method]:
        return {"GetModelStatus": self.tell_status, "HandleReloadConfigRequest": self.reload}

    async def tell_status(self, request: Any, _: RpcCall) -> Any:
        """GetModelStatus. A label is ignored, as there."""
        if not request.HasField("model_spec"):
            raise InvalidArgument("Missing ModelSpec")
        spec = request.model_spec
        version = spec.version.value if spec.WhichOneof("version_choice") == "version" else None
        answer = message_class("GetModelStatusResponse")()
        for row in self._manager.statuses(spec.name, version):
            status = answer.model_version_status.add(version=row.version, state=STATES[row.state])
            status.status.SetInParent()
            if row.error is not None:
                status.status.error_code, status.status.error_message = row.error.code, str(row.error)
        return answer

    async def reload(self, request: Any, call: RpcCall) -> Any:
        """HandleReloadConfigRequest. The answer comes when each new model is available or has failed."""
        answer = message_class("ReloadConfigResponse")()
        async with self._reloading:
            before = {name: _total(self._metrics, name) for name in request.metric_names}
            await self._replace_models(request.config, call)
            answer.status.SetInParent()
            for name, total in before.items():
                answer.metric.add(name=name, int64_value_increase=int(_total(self._metrics, name) - total))
        return answer

    async def _replace_models(self, config: Any, call: RpcCall) -> None:
        if config.WhichOneof("config") != "model_config_list":
            raise InvalidArgument("ServerModelConfig type not supported by HandleReloadConfigRequest. Only "
                                  "ModelConfigList is currently supported")
        configs = model_configs(config)
        earlier = set(self._manager.names())
        await asyncio.to_thread(self._apply, configs)
        added = {config.name for config in configs} - earlier
        while not self._manager.is_settled():
            if call.deadline is not None and monotonic() >= call.deadline:
                raise DeadlineExceeded("the new models are not loaded yet")
            await asyncio.sleep(SLICE_SECONDS)
        failed = [name for name in sorted(added) if not self._is_available(name)]
        if failed:
            raise Unknown(f"{len(failed)} model(s) did not become available: {{{', '.join(failed)}}}")

    def _apply(self, configs: Sequence[ModelConfig]) -> None:
        self._manager.configure(configs)
        self._manager.poll()

    def _is_available(self, name: str) -> bool:
        try:
            return any(row.state == AVAILABLE for row in self._manager.statuses(name))
        except HealdError:
            return False


def _total(metrics: Metrics, name: str) -> float:
    """The sum of a counter over all its labels; 0 for a name that is no counter's."""
    return sum(cell.total for metric in metrics.all() if metric.name == name and not metric.limits
               for _, cell in metric.cells())
