# Each target sets up all it needs on a bare machine with Python 3.11, inside .venv.
PYTHON ?= python3.11
ifeq (, $(shell command -v $(PYTHON) 2>/dev/null))
PYTHON := python3
endif
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
STAMPS := $(VENV)/.stamps

.PHONY: help demo test test-bounds fuzz check fix bench clean
help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# --no-build-isolation with a pinned hatchling keeps the build inside .venv as well.
$(STAMPS)/core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(PIP) install -c constraints.txt hatchling editables
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[cli]'
	@touch $@

# torch first and by itself: a resolver that meets it as somebody's dependency may pick a CUDA build.
$(STAMPS)/train: $(STAMPS)/core
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt openskill safetensors
	@touch $@

$(STAMPS)/test: $(STAMPS)/train
	$(PIP) install -c constraints.txt stable-baselines3 pytest pytest-timeout hypothesis scipy
	$(PIP) install -c constraints.txt tensorboard wandb optuna psutil av pillow
# Without its dependencies: it pins another torch, with gigabytes beside it.
	$(PIP) install -c constraints.txt --no-deps pufferlib-core
# Foreign envs to test with. Without dependencies: mettagrid asks for a whole server's.
	$(PIP) install -c constraints.txt --no-deps minigrid pygame-ce pettingzoo mettagrid \
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

# numba's cache does not notice a change in a kernel that another file has compiled in.
$(STAMPS)/kernels: $(STAMPS)/core $(shell find src -name '*.py')
	@find src -name '*.nbi' -delete -o -name '*.nbc' -delete
	@touch $@

# All demos at once, briefly: their kernels are compiled the first time they run.
$(STAMPS)/warm: $(STAMPS)/kernels $(STAMPS)/train
	@echo "Compiling the kernels of the demo, once"
	@$(BIN)/stepladder compare --scenarios chain-2 --num-seeds 1 --json \
	  --curricula frontier frontier-features learning-progress >/dev/null & \
	  $(BIN)/python examples/staged_over_subprocesses.py --seconds 1 >/dev/null; wait
	@$(BIN)/python examples/hockey_phases.py --seconds 0.1 >/dev/null & \
	  $(BIN)/stepladder train --total-steps 20000 --no-keep >/dev/null; wait
	@touch $@

demo: $(STAMPS)/warm  ## Curricula compared; stages over 8 subprocess envs, live; an agent trained and examined; the vector env measured
	$(BIN)/stepladder compare --scenarios chain-10 grid-6x6 --num-seeds 16 \
	  --curricula frontier frontier-features learning-progress --picture demo.svg
	$(BIN)/python examples/staged_over_subprocesses.py
	$(BIN)/stepladder train --total-steps 600000 --out runs/demo --overwrite
	$(BIN)/python examples/hockey_phases.py --seconds 10
	$(BIN)/stepladder tune CartPole-v1 --seconds 0.2 --env-counts 1 8 32

test: $(STAMPS)/test $(STAMPS)/browser $(STAMPS)/kernels  ## The whole suite
	$(BIN)/python -m pytest

# Kernels with bounds checks have a cache of their own.
CHECKED := $(CURDIR)/$(VENV)/.checked-kernels
$(STAMPS)/checked: $(STAMPS)/core $(shell find src -name '*.py')
	@rm -rf $(CHECKED)
	@touch $@

test-bounds: $(STAMPS)/test $(STAMPS)/browser $(STAMPS)/checked  ## The suite with bounds checks in all kernels; slow
	STEPLADDER_CHECK_BOUNDS=1 NUMBA_CACHE_DIR=$(CHECKED) $(BIN)/python -m pytest $(TESTS)

SECONDS ?= 600
fuzz: $(STAMPS)/test $(STAMPS)/kernels  ## Search for files that break it, SECONDS with each fuzzer
	PYTHONPATH=tests $(BIN)/python tests/fuzz/fuzz_configs.py --seconds $(SECONDS)
	PYTHONPATH=tests $(BIN)/python -m fuzz.harness all --seconds $(SECONDS) --first $$(date +%s)000

check: $(STAMPS)/check  ## Lint, types, import layers, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell src tests docs examples benchmarks README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md

fix: $(STAMPS)/check  ## Format and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMPS)/test $(STAMPS)/kernels  ## The figures behind docs/benchmarks.md, quick version
	$(BIN)/python benchmarks/overhead.py --quick
	$(BIN)/python benchmarks/simulator.py --quick
	$(BIN)/python benchmarks/vector_env.py --quick
	$(BIN)/python benchmarks/games.py --quick
	$(BIN)/python benchmarks/hockey_fidelity.py --quick
	$(BIN)/python benchmarks/training.py --quick
	$(BIN)/python benchmarks/agents.py --quick
	$(BIN)/python benchmarks/agents_gradients.py --quick --num-envs 8
	$(BIN)/python benchmarks/ledge_curricula.py --quick

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache
