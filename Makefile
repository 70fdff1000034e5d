# Two commands on a fresh machine with Python >= 3.11: `make demo` runs the digits, `make test` the tests. The first of
# them sets up .venv, which takes about a minute. docs/gate.md has the parts of the gate.
PYTHON ?= python3
VENV := .venv
MANIFESTS := requirements.txt constraints.txt $(wildcard pyproject.toml */pyproject.toml plugins/*/pyproject.toml)

# How much `make slow` does; CONTRIBUTING.md has short forms.
MINUTES ?= 30
MUTANTS ?= 200000
GRAPHS ?= 20000
KILLS ?= 200
DEVICES ?= CPU:0 OPENCL:0 EXAMPLE:0 SIM:0
ARCHITECTURES ?= sm_80 sm_90 sm_100 sm_120
PYTHONS ?= 3.11 3.12 3.13

.PHONY: demo test lint types tests thorough quick wheels slow soak mutants random-graphs kills conformance fake-gpu cuda-texts installation bench opencl-cpu tables clean
demo: $(VENV)/.ready
	$(VENV)/bin/python examples/digits/demo.py

# The types are checked beside the tests: mypy alone has one thread, and would leave a core idle.
test: lint
	@$(MAKE) --no-print-directory -j 2 types tests

lint: $(VENV)/.ready
	$(VENV)/bin/ruff check

types: $(VENV)/.ready
	$(VENV)/bin/python -m mypy

# Each of two workers begins with one half of the files, and takes from the other when its own half is done. Two workers
# that draw from one list would both import, load and prepare what nearly every file needs.
PYTEST := $(VENV)/bin/python -m pytest -n 2 --dist worksteal

tests: $(VENV)/.ready
	HEALDTEST_GRAPHS=20 $(PYTEST) -m "not thorough"

# The exhaustive rest: the tests of tests/thorough.txt.
thorough: $(VENV)/.ready
	$(PYTEST) -m "thorough or examples"

# The tests of a room or distribution: `make quick ROOM=executor`.
ROOMS = $(wildcard tests/$(ROOM) tests/*/$(ROOM))
quick: $(VENV)/.ready
	@$(if $(and $(ROOM),$(ROOMS)),,echo "make quick ROOM=NAME, a folder of tests/: $(notdir $(patsubst %/,%,$(wildcard tests/*/ tests/runtime/*/ tests/graphs/*/)))"; exit 2)
	HEALDTEST_GRAPHS=20 $(PYTEST) -m "not thorough" $(ROOMS)

# Sdist and wheel of every distribution, into dist/; CONTRIBUTING.md has the steps of a release.
wheels: $(VENV)/.ready
	$(VENV)/bin/python -m release.wheels

# The checks that are too long for the gate. `make -k slow` goes on after a failure.
slow: soak mutants random-graphs kills conformance fake-gpu cuda-texts installation

soak: $(VENV)/.ready
	$(VENV)/bin/python tests/soak.py --minutes $(MINUTES)

mutants: $(VENV)/.ready
	$(VENV)/bin/python -m fuzz run --mutants $(MUTANTS) --jobs 2

random-graphs: $(VENV)/.ready
	HEALDTEST_GRAPHS=$(GRAPHS) $(VENV)/bin/python -m pytest -n 2 -o faulthandler_timeout=0 tests/runtime/executor/test_dataflow.py \
	    tests/runtime/executor/test_parallel_schedule.py tests/runtime/executor/test_devices.py tests/runtime/executor/test_control_edges.py \
	    tests/runtime/host_kernels/test_random_programs.py tests/graphs/session/test_partial_runs.py

kills: $(VENV)/.ready
	PYTHONPATH=tests $(VENV)/bin/python -m workers.kill_writers --kills $(KILLS)

# OPENCL:0 is PoCL where that can be unpacked, else a driver of this machine.
conformance: $(VENV)/.ready
	eval "$$(.ci/opencl-cpu)"; $(VENV)/bin/python -m pytest --pyargs heald_conformance $(DEVICES:%=--device %)
	HEALDTEST_CASES=all $(VENV)/bin/python -m pytest tests/device_opencl -k recorded_cases

# GPU:0 of the fake driver: kernel texts that the machine's C++ compiler compiled, and NVRTC for sm_90. No GPU takes part.
fake-gpu: $(VENV)/.ready
	HEALDTEST_NVRTC=sm_90 HEALD_PLUGINS__LOAD='["$(CURDIR)/tests/fake_cuda/plugin.py"]' $(VENV)/bin/python -m pytest -n 2 --pyargs heald_conformance \
	    --conformance-quick --device GPU:0 -k "not many_rows_or_elements"
	HEALD_PLUGINS__LOAD='["$(CURDIR)/tests/fake_cuda/plugin.py"]' PYTHONPATH=tests $(VENV)/bin/python device_gpu/check_networks.py

# The CUDA texts of all networks, compiled for each architecture and run by the host's C++ compiler.
cuda-texts: $(VENV)/.ready
	HEALDTEST_ARCHITECTURES="$(ARCHITECTURES)" $(VENV)/bin/python -m pytest -n 2 tests/kernel_text -k cuda

# heald installed from its wheels, in a fresh environment of each Python that pyenv has.
installation: $(VENV)/.ready
	HEALDTEST_PYTHONS="$(PYTHONS)" $(VENV)/bin/python -m pytest tests/release/test_installation.py

bench: $(VENV)/.ready
	$(VENV)/bin/python benchmarks/overhead.py
	$(VENV)/bin/python benchmarks/eager.py
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python benchmarks/kernels.py
	$(VENV)/bin/python benchmarks/peers.py
	$(VENV)/bin/python benchmarks/control_flow.py
	$(VENV)/bin/python benchmarks/queues.py
	$(VENV)/bin/python benchmarks/parallel.py
	$(VENV)/bin/python benchmarks/allocators.py
	$(VENV)/bin/python benchmarks/opencl.py

# PoCL in the user's cache, by which the tests have an OpenCL device; prints the environment that other programs need.
opencl-cpu:
	@.ci/opencl-cpu

# Made anew, whole, when a manifest changes or when the last set-up did not reach its end. (Not made aside and renamed:
# the console scripts of an environment have its path in their first line.) One hatchling builds our distributions; an
# isolated environment for each of them would double the time.
$(VENV)/.ready: $(MANIFESTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "heald needs Python 3.11 or newer: make PYTHON=python3.x")'
	@echo "heald: setting up $(VENV), about a minute; later runs skip this"
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check -c constraints.txt hatchling editables
	$(VENV)/bin/python -m pip install --disable-pip-version-check --no-build-isolation -r requirements.txt
	touch $@

# All generated tables, stubs and pages of the repository, after a change of their sources; tests compare each with its
# source. The order matters: the page of ops lists what the tables of families name.
tables: $(VENV)/.ready
	$(VENV)/bin/python -m heald_tf_ops.metadata
	$(VENV)/bin/python -m heald_cpu.kernels
	$(VENV)/bin/python -m heald_tf_ops.stubs
	$(VENV)/bin/python tests/structure/api_page.py
	PYTHONPATH=tests $(VENV)/bin/python tests/broken/test_broken_plugins.py
	{ sed '/^| op/,$$d' docs/ops.md; HEALD_PLUGINS__BLOCK=onednn $(VENV)/bin/heald ops --tier 1 2 3 4 --device CPU --markdown; } > docs/ops.md.new
	mv docs/ops.md.new docs/ops.md

clean:
	rm -rf $(VENV) dist
