"""Messages of runs by gRPC are read once there is room."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep

import grpc.aio
import numpy as np
import pytest
from harness.serve_models import infos, signature
from heald.errors import DeadlineExceeded, InvalidArgument, Unavailable
from heald_client import connect
from heald_client.errors import ClientError
from heald_serve.grpc.message_reading import AVERAGED_MESSAGES, FEWEST_MESSAGES, MessageReader
from heald_serve.predict import Predictor


class Call:
    """A call whose message comes when `whole` is set."""

    def __init__(self, message=b"m", *, is_whole=True):
        self.message, self.reads, self.whole = message, 0, asyncio.Event()
        if is_whole:
            self.whole.set()

    async def read(self):
        self.reads += 1
        await self.whole.wait()
        return self.message


def have_room():
    """There is always room."""


def test_a_message_is_read():
    async def run():
        reader = MessageReader(have_room)
        return await reader.read(Call()), reader.reading

    assert asyncio.run(run()) == (b"m", 0)


def test_a_call_without_room_is_refused_before_its_message_is_read():
    def refuse():
        raise Unavailable("full")

    async def run():
        call = Call()
        with pytest.raises(Unavailable, match="full"):
            await MessageReader(refuse).read(call)
        return call.reads

    assert asyncio.run(run()) == 0


def test_a_call_without_a_message_is_refused():
    async def run():
        with pytest.raises(InvalidArgument, match="no message"):
            await MessageReader(have_room).read(Call(grpc.aio.EOF))

    asyncio.run(run())


def test_large_messages_are_read_a_few_at_a_time():
    async def run():
        reader = MessageReader(have_room, reading_bytes=1 << 20)
        for _ in range(4 * AVERAGED_MESSAGES):
            await reader.read(Call(bytes(100_000)))
        calls = [Call(is_whole=False) for _ in range(FEWEST_MESSAGES + 1)]
        tasks = [asyncio.create_task(reader.read(call)) for call in calls]
        await asyncio.sleep(0)
        assert reader.reading == FEWEST_MESSAGES
        for call in calls:
            call.whole.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return [outcome == b"m" for outcome in outcomes], outcomes[-1], reader.reading

    are_read, last, reading = asyncio.run(run())
    assert are_read == [True] * FEWEST_MESSAGES + [False]
    assert isinstance(last, Unavailable)
    assert reading == 0


def test_small_messages_have_no_such_bound():
    async def run():
        reader = MessageReader(have_room, reading_bytes=1 << 20)
        await reader.read(Call(bytes(100)))
        calls = [Call(is_whole=False) for _ in range(500)]
        tasks = [asyncio.create_task(reader.read(call)) for call in calls]
        await asyncio.sleep(0)
        for call in calls:
            call.whole.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(run()) == [b"m"] * 500


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_slow_message_loses_its_place_when_another_call_needs_it(seconds):
    async def run():
        reader = MessageReader(have_room, reading_bytes=0, seconds=seconds)
        await reader.read(Call(bytes(100)))
        tasks = [asyncio.create_task(reader.read(Call(is_whole=False))) for _ in range(FEWEST_MESSAGES)]
        await asyncio.sleep(0.01)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await reader.read(Call())
        await asyncio.sleep(0.01)
        outcomes = [task.exception() if task.done() else None for task in tasks]
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, DeadlineExceeded | asyncio.CancelledError) for outcome in ended)
        return [isinstance(outcome, DeadlineExceeded) for outcome in outcomes], reader.reading

    is_late, reading = asyncio.run(run())
    assert is_late == [seconds == 0.0] + [False] * (FEWEST_MESSAGES - 1)
    assert reading == 0


def test_a_place_counts_from_the_conversion_of_a_body():
    predictor = Predictor(1, 1)
    with predictor.admission(), predictor.admission():
        assert predictor.is_full()
        with pytest.raises(Unavailable, match="2 requests run or wait already"):
            predictor.check_room()
        with pytest.raises(Unavailable), predictor.admission():
            pytest.fail("there was a place")
    predictor.check_room()
    predictor.close()


def test_an_overloaded_server_refuses_calls_as_unavailable_and_answers_again(start):
    gate = Event()
    model = signature(infos(x="float32"), infos(y="float32"), lambda x: gate.wait(30) and x)
    server, _ = start({"m": model}, grpc_port=0, rest_api_num_threads=1, max_queued_requests=1)

    def ask(_):
        with connect(f"grpc://127.0.0.1:{server.grpc_server.port}", retries=0) as client:
            try:
                return client.predict("m", {"x": np.zeros((1, 1 << 20), np.float32)})["y"].shape
            except ClientError as error:
                return error.code

    with ThreadPoolExecutor(6) as threads:
        answers = [threads.submit(ask, number) for number in range(6)]
        end = monotonic() + 30
        while sum(answer.done() for answer in answers) < 4 and monotonic() < end:
            sleep(0.01)
        gate.set()
        outcomes = sorted(str(answer.result(30)) for answer in answers)
    assert outcomes == ["(1, 1048576)"] * 2 + ["UNAVAILABLE"] * 4
    assert ask(0) == (1, 1 << 20)
    assert server.predictor.pending == 0
