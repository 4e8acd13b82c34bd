"""What is missing for a cluster is said in one line, before anything is started."""

import importlib
import subprocess
import sys
from typing import Any

import pytest

from stepladder.cluster import requirements
from stepladder.errors import ConfigError


def test_importing_the_package_does_not_import_ray() -> None:
    code = "import sys, stepladder.cluster, stepladder.cluster.rllib; print('ray' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.strip() == "False"


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(requirements, "import_module", missing)
    for name in ("stepladder.cluster", "stepladder.cluster.rllib"):
        module = importlib.import_module(name)
        with pytest.raises(ConfigError, match=r"pip install 'stepladder\[ray\]'") as caught:
            getattr(module, module.__all__[0])
        assert "\n" not in str(caught.value)


def test_an_old_ray_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "version", lambda name: "2.9.3")
    with pytest.raises(ConfigError, match=r"ray 2\.9\.3 is installed; expected 2\.60 or newer"):
        requirements.require_ray()


def test_rllib_without_its_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        if "rllib" in name:
            raise ImportError("No module named 'tree'")
        return sys

    monkeypatch.setattr(requirements, "import_module", missing)
    with pytest.raises(ConfigError, match=r"\(No module named 'tree'\).*stepladder\[rllib\]"):
        requirements.require_rllib()


def _fake_ray(**parts: Any) -> Any:
    return type("Ray", (), {name: staticmethod(part) for name, part in parts.items()})


def _gone() -> Any:
    raise ConnectionError("no answer")


@pytest.mark.parametrize(
    ("ray", "said"),
    [
        (_fake_ray(is_initialized=lambda: False), "is not connected to a Ray cluster"),
        (_fake_ray(is_initialized=lambda: True, nodes=_gone), r"does not answer \(ConnectionErr"),
        (_fake_ray(is_initialized=lambda: True, nodes=list), "has no node that is alive"),
    ],
)
def test_a_cluster_that_is_not_there_is_an_error_in_one_line(
    monkeypatch: pytest.MonkeyPatch, ray: Any, said: str
) -> None:
    monkeypatch.setattr(requirements, "require_ray", lambda: ray)
    with pytest.raises(ConfigError, match=said) as caught:
        requirements.require_cluster()
    assert "\n" not in str(caught.value)


def test_too_few_cpus_are_an_error_instead_of_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = _fake_ray(cluster_resources=lambda: {"CPU": 4.0})
    monkeypatch.setattr(requirements, "require_cluster", lambda: ray)
    requirements.require_cpus(4, "this")
    with pytest.raises(ConfigError, match="this needs 5 CPUs and the Ray cluster has 4, so it"):
        requirements.require_cpus(5, "this")
