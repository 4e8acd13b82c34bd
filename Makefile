# Each target sets up all it needs on a bare machine with Python 3.11 or later, inside .venv.
PYTHON ?= python3.11
ifeq (, $(shell command -v $(PYTHON) 2>/dev/null))
PYTHON := python3
endif
VENV := .venv
BIN := $(VENV)/bin
QUIET := --quiet --disable-pip-version-check
PIP := $(BIN)/python -m pip $(QUIET)
STAMPS := $(VENV)/.stamps
# Without bytecode on disk, each process of pytest takes twelve seconds to read the tests.
export PYTHONDONTWRITEBYTECODE :=
# Processes that run tests side by side. Each file of tests stays in one of them.
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(JOBS)

.PHONY: help demo quick test test-bounds test-core fuzz check fix docs package bench clean
help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# --no-build-isolation with a pinned hatchling keeps the build inside .venv as well.
$(STAMPS)/core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(PIP) install -c constraints.txt hatchling editables
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[cli,plot]'
	@touch $@

# torch first and by itself: as a dependency of another package, pip may pick a CUDA build.
$(STAMPS)/train: $(STAMPS)/core
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt openskill safetensors
	@touch $@

TEST_TOOLS := pytest pytest-timeout pytest-xdist hypothesis scipy psutil
$(STAMPS)/test: $(STAMPS)/train
	$(PIP) install -c constraints.txt stable-baselines3 $(TEST_TOOLS)
	$(PIP) install -c constraints.txt tensorboard wandb optuna starlette uvicorn httpx av pillow onnx onnxscript onnxruntime
	$(PIP) install -c constraints.txt ipykernel nbclient nbformat pandas
# By name, not by the extra of ray, which asks for gymnasium 1.2.2: RLlib runs with the one tested here.
	$(PIP) install -c constraints.txt ray dm-tree fsspec lz4 ormsgpack pyarrow pydantic tensorboardX
# Foreign envs and vector envs to test with. Without dependencies: mettagrid asks for a whole server's, and pufferlib-core
# pins another torch with gigabytes beside it. Both have wheels up to Python 3.12; their tests are skipped without them.
	$(PIP) install -c constraints.txt --no-deps minigrid pygame-ce pettingzoo \
	  'pufferlib-core; python_version < "3.13"' 'mettagrid; python_version < "3.13"' \
	  importnb boto3 botocore s3transfer jmespath python-dateutil six
	@touch $@

# The report's tests open it in a real browser.
$(STAMPS)/browser: $(STAMPS)/core
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null \
	  || { echo "Installing chromium, which the tests of the report need"; \
	       SUDO=$$(test "$$(id -u)" = 0 || echo "sudo -n"); \
	       $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq chromium >/dev/null; }
	@touch $@

$(STAMPS)/check: $(STAMPS)/test
	$(PIP) install -c constraints.txt ruff 'pyright[nodejs]' import-linter codespell
	@touch $@

$(STAMPS)/docs: $(STAMPS)/core
	$(PIP) install -c constraints.txt mkdocs-material 'mkdocstrings[python]'
	@touch $@

# All demos at once, briefly: their kernels are compiled the first time they run.
$(STAMPS)/warm: $(STAMPS)/train $(shell find src -name '*.py')
	@echo "Compiling the kernels of the demo, once"
	@$(BIN)/stepladder compare --scenarios chain-2 --num-seeds 1 --json \
	  --curricula frontier frontier-features learning-progress >/dev/null & \
	  $(BIN)/python examples/staged_over_subprocesses.py --seconds 1 >/dev/null; wait
	@$(BIN)/python examples/hockey_phases.py --seconds 0.1 >/dev/null & \
	  $(BIN)/stepladder train --total-steps 20000 --no-keep >/dev/null; wait
	@touch $@

demo: $(STAMPS)/warm  ## Curricula compared; stages over 8 subprocess envs, live; the vector env measured; an agent trained, and what it learnt
	$(BIN)/stepladder compare --scenarios chain-10 grid-6x6 --num-seeds 16 \
	  --curricula frontier frontier-features learning-progress --picture demo.svg
	$(BIN)/python examples/staged_over_subprocesses.py
	$(BIN)/python examples/hockey_phases.py --seconds 8
	$(BIN)/stepladder tune CartPole-v1 --seconds 0.2 --env-counts 1 8 32
	$(BIN)/stepladder train --source stages=simplest,simpler,simple,medium --total-steps 550000 \
	  --evaluation.every-steps 250000 --evaluation.num-games 64 --out runs/demo --overwrite
	$(BIN)/stepladder eval runs/demo --levels test --picture demo-learnt.svg

quick: $(STAMPS)/test  ## What a change breaks most often, within 90 seconds: no processes, no browser, nothing slow
	$(PYTEST) -m 'not processes and not browser and not slow and not soak and not ray' $(TESTS)

# With the kernels of the demo: both cores compile different ones, and no worker has to while a test waits for it.
test: $(STAMPS)/test $(STAMPS)/browser $(STAMPS)/warm  ## The whole suite
	$(PYTEST) $(TESTS)

# Kernels with bounds checks have a cache of their own.
test-bounds: $(STAMPS)/test $(STAMPS)/browser  ## The suite with bounds checks in all kernels; takes an hour
	STEPLADDER_CHECK_BOUNDS=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/.checked-kernels $(PYTEST) $(TESTS)

CORE_VENV := .venv-core
CORE_TESTS := $(addprefix tests/,configs contracts curricula plans saving stats sync tasks)
test-core:  ## The tests of the core, installed without any extra
	@test -x $(CORE_VENV)/bin/python || $(PYTHON) -m venv $(CORE_VENV)
	$(CORE_VENV)/bin/python -m pip install $(QUIET) -c constraints.txt hatchling editables $(TEST_TOOLS)
	$(CORE_VENV)/bin/python -m pip install $(QUIET) -c constraints.txt --no-build-isolation -e .
	$(CORE_VENV)/bin/python -m pytest -n $(JOBS) $(CORE_TESTS)

SECONDS ?= 600
fuzz: $(STAMPS)/test  ## Search for files that break it, SECONDS with each fuzzer
	PYTHONPATH=tests $(BIN)/python tests/fuzz/fuzz_configs.py --seconds $(SECONDS)
	PYTHONPATH=tests $(BIN)/python -m fuzz.harness all --seconds $(SECONDS) --first $$(date +%s)000

check: $(STAMPS)/check  ## Lint, types, import layers, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs examples benchmarks tools README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

fix: $(STAMPS)/check  ## Format and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMPS)/docs  ## Build the documentation site into site/; a broken link is an error
# The variable silences a notice about the theme's successor.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# torch by itself, as above. The smoke test runs outside the repository, so that only the wheel can be imported; the last
# of its extras names it. Each set has an environment of its own, so that none lives on what another one brought.
EXTRAS := cli cli,dashboard cli,plot notebook cli,sweep cli,train sb3 cli,tensorboard cli,wandb cli,watch cli,train,export
package: $(STAMPS)/core  ## Build wheel and sdist into dist/, install the wheel with each extra into an empty environment and try it
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv dist/venv
	dist/venv/bin/python -m pip install $(QUIET) -c constraints.txt dist/*.whl
	cd dist && venv/bin/python ../tools/smoke.py core
	for extras in $(EXTRAS); do \
	  rm -rf dist/venv && $(PYTHON) -m venv dist/venv || exit 1; \
	  case $$extras in *train*|*sb3*) dist/venv/bin/python -m pip install $(QUIET) -c constraints.txt torch || exit 1;; esac; \
	  dist/venv/bin/python -m pip install $(QUIET) -c constraints.txt "$$(ls dist/*.whl)[$$extras]" \
	  && (cd dist && venv/bin/python ../tools/smoke.py $${extras##*,}) || exit 1; done
	rm -rf dist/venv

bench: $(STAMPS)/test  ## The figures behind docs/benchmarks.md, quick version
	$(BIN)/python benchmarks/overhead.py --quick
	$(BIN)/python benchmarks/simulator.py --quick
	$(BIN)/python benchmarks/vector_env.py --quick
	$(BIN)/python benchmarks/games.py --quick
	$(BIN)/python benchmarks/hockey_fidelity.py --quick
	$(BIN)/python benchmarks/training.py --quick
	$(BIN)/python benchmarks/agents.py --quick
	$(BIN)/python benchmarks/agents_gradients.py --quick --num-envs 8
	$(BIN)/python benchmarks/ledge_curricula.py --quick
	$(BIN)/python benchmarks/pooling.py --quick
	$(BIN)/python benchmarks/bars.py --quick
	$(BIN)/python benchmarks/prediction.py --quick

clean:  ## Remove virtual environments, caches and what was built
	rm -rf $(VENV) $(CORE_VENV) dist site .pytest_cache .ruff_cache .import_linter_cache
