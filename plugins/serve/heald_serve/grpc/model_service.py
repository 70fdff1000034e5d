"""TensorFlow Serving's ModelService: the states of versions, and a new list of models."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from heald.errors import DeadlineExceeded, InvalidArgument, Unknown

from ..messages import message_class
from ..metrics import Metrics
from ..models.model_config import model_configs
from ..models.model_lists import ModelLists, is_available
from ..models.model_manager import ModelManager
from .call_handlers import Method, RpcCall

STATES = {"START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50}
SLICE_SECONDS = 0.02  # of waiting for new models


class ModelService:
    """A thread of the manager loads the models of a new list; a call waits for them, in every worker."""

    def __init__(self, manager: ModelManager, metrics: Metrics, lists: ModelLists) -> None:
        self._manager, self._metrics, self._lists = manager, metrics, lists
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
        await asyncio.to_thread(self._lists.replace_models, configs)
        added = {config.name for config in configs} - earlier
        while not await asyncio.to_thread(self._lists.is_settled):
            if call.deadline is not None and monotonic() >= call.deadline:
                raise DeadlineExceeded("the new models are not loaded yet")
            await asyncio.sleep(SLICE_SECONDS)
        faults = [fault for name in sorted(added) if (fault := await asyncio.to_thread(self._fault_of, name))]
        if faults:
            raise Unknown(f"{len(faults)} model(s) did not become available: {{{', '.join(faults)}}}")

    def _fault_of(self, name: str) -> str:
        """The reason why a model does not serve in every worker, "" for one that does."""
        rows = next((rows for rows in self._lists.statuses(name) if not is_available(rows)), None)
        if rows is None:
            return ""
        if not rows:
            return f"{{name: {name}}} due to error: no versions found"
        return f"{{name: {name} version: {rows[0].version}}} due to error: {rows[0].error}"


def _total(metrics: Metrics, name: str) -> float:
    """The sum of a counter over all its labels; 0 for a name that is no counter's."""
    return sum(cell.total for metric in metrics.all() if metric.name == name and not metric.limits
               for _, cell in metric.cells())
