from __future__ import annotations

import heald
import pytest
from builders.programs import program
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("host_kernels"), "plugins_for_tests.tfrt_test"]}}


@pytest.fixture(params=["multi_threaded", "single_threaded", "seeded"])
def host(request):
    """A host with the test kernels, for each work queue."""
    host = heald.HostContext(config=CONFIG, work_queue=request.param)
    yield host
    host.close()


@pytest.fixture
def checking_host():
    """A host that checks the types of kernels' results."""
    host = heald.HostContext(config=CONFIG | {"debug": {"check_types": True}})
    yield host
    host.close()


@pytest.fixture
def run(host):
    """`run(program, name, *arguments)`: the results, when all are there."""
    def run_and_wait(program, name="main", *arguments, request=None):
        request = request or heald.RequestContext(host)
        results = program.run(name, *arguments, request=request)
        assert host.await_values(results, timeout=20)
        return results

    return run_and_wait


def payloads(results):
    return [r.error if r.is_error() else r.get() for r in results]


@pytest.fixture(params=["as built", "through BEF"])
def give(request, run):
    """`give(functions, *arguments)`: the results of the program's function main, as built or read from a file."""
    def payloads_of_functions(functions, *arguments, context=None):
        program_def = program(*functions)
        if request.param == "through BEF":
            read = heald.bef.loads(heald.bef.dumps(program_def)).program
            program_def = heald.HostProgram(read.functions, read.constants, read.requires)
        return payloads(run(program_def, "main", *arguments, request=context))

    return payloads_of_functions
