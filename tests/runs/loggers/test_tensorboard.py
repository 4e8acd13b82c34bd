"""TensorBoard's own reader finds in the event file what was logged."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from stepladder.errors import ConfigError
from stepladder.runs import Logger, Run, TensorBoardLogger


def read(folder: Path) -> Any:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def test_scalars_and_texts_can_be_read_back(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path / "deep/tb")
    assert isinstance(logger, Logger)
    for step in (10, 20):
        logger.log(step, {"overview/reward": step / 16, "größe": -1.0})
    logger.event(15, "stage_advanced", "success 0.9 > 0.8 é")
    logger.close()
    found = read(tmp_path / "deep/tb")
    assert found.Tags()["scalars"] == ["overview/reward", "größe"]
    scalars = found.Scalars("overview/reward")
    assert [(scalar.step, scalar.value) for scalar in scalars] == [(10, 0.625), (20, 1.25)]
    assert 1.6e9 < scalars[0].wall_time <= scalars[1].wall_time
    (text,) = found.Tensors("events/stage_advanced")
    assert text.step == 15
    assert [value.decode() for value in text.tensor_proto.string_val] == ["success 0.9 > 0.8 é"]
    metadata = found.SummaryMetadata("events/stage_advanced")
    assert metadata.plugin_data.plugin_name == "text"


def test_what_was_logged_is_in_the_file_at_once(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    logger.log(1, {"a": 1.0})
    assert [scalar.step for scalar in read(tmp_path).Scalars("a")] == [1]
    logger.close()


def test_numbers_that_are_not_finite_are_written(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    logger.log(1, {"nan": math.nan, "inf": math.inf})
    logger.close()
    found = read(tmp_path)
    assert math.isnan(found.Scalars("nan")[0].value)
    assert found.Scalars("inf")[0].value == math.inf


def test_a_second_logger_gets_a_file_of_its_own(tmp_path: Path) -> None:
    for step in (1, 2):
        logger = TensorBoardLogger(tmp_path)
        logger.log(step, {"a": float(step)})
        logger.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert [scalar.step for scalar in read(tmp_path).Scalars("a")] == [1, 2]


def test_a_run_writes_through_it(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path / "tb")
    with Run.create(tmp_path / "run", kind="training", loggers=[logger]) as run:
        run.log(5, {"a": 0.5})
        run.event(6, "kind", "text")
    assert run.num_logger_errors == 0
    found = read(tmp_path / "tb")
    assert [(scalar.step, scalar.value) for scalar in found.Scalars("a")] == [(5, 0.5)]
    assert found.Tensors("events/kind")[0].step == 6


def test_neither_tensorflow_nor_torch_is_loaded(tmp_path: Path) -> None:
    before = set(sys.modules)
    TensorBoardLogger(tmp_path).close()
    assert not {"tensorflow", "torch"} & (set(sys.modules) - before)


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("tensorboard.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[tensorboard\]'") as caught:
        TensorBoardLogger(tmp_path / "tb")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "tb").exists()
