"""The playground in a real browser: asked by sliders and by its address, on a narrow screen too."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import browsing

from stepladder.dashboard.server.serving import DashboardServer
from stepladder.simulator.generalising.scenarios import GeneralScenario
from stepladder.simulator.scenarios import scenario

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

PLAYED = "document.documentElement.dataset.played > {}"


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.chdir(tmp_path)
    copy = scenario("levels-2x20")
    assert isinstance(copy, GeneralScenario)
    copy.save(runs / "copy <b>.json")
    (runs / "other.json").write_text('{"a": 1}')
    server = DashboardServer([runs])
    serving = threading.Thread(target=server.serve)
    serving.start()
    yield server.address
    server.stop()
    serving.join(10.0)


def test_sliders_and_addresses_ask_and_mistakes_are_told(address: str, tmp_path: Path) -> None:
    with browsing(tmp_path / "profile") as page:
        page.open(f"{address}#/playground?scenario=chain-4&dynamics.eta=0.1", width=400)
        page.until(PLAYED.format(0))
        told = page.ask(
            """
            const text = (place) => document.querySelector(place).textContent;
            const field = (name) => document.getElementById(`set-${name}`);
            return [text(".words"), field("dynamics.eta").value, text(".shared pre"),
              document.documentElement.scrollWidth, document.querySelectorAll("canvas").length];
            """
        )
        words, eta, command, width, charts = told
        assert words.startswith("frontier is done after ")
        assert eta == "0.1"
        assert command.startswith("stepladder simulate frontier --learner dynamics.eta=0.1 ")
        assert (width, charts) == (400, 3)

        page.ask(
            """
            const slider = document.querySelector("#set-mastery")
              .closest(".setting").querySelector("[type=range]");
            slider.value = 200;
            slider.dispatchEvent(new Event("input"));
            """
        )
        page.until(PLAYED.format(1))
        where, shown = page.ask(
            """return [location.hash, document.getElementById("set-mastery").value];"""
        )
        assert "mastery=0.5" in where
        assert shown == "0.5"

        page.open(f"{address}#/playground?scenario=chain-4&num_envs=9999&mastery=7")
        page.until(PLAYED.format(0))
        problem = page.ask("""return document.querySelector(".problem").textContent""")
        assert "at most 4096" in problem
        assert page.ask("""return document.querySelectorAll(".setting").length""") > 20
        page.open(f"{address}#/playground?scenario={'runs/copy %3Cb%3E.json'}&curriculum=uniform")
        page.until(PLAYED.format(0))
        words, bold, offered = page.ask(
            """
            return [document.querySelector(".words").textContent,
              document.querySelectorAll("b>b").length,
              [...document.querySelectorAll("#scenarios option")].map((one) => one.value)];
            """
        )
        assert words.startswith("uniform is")
        assert bold == 0
        assert offered[0] == "runs/copy <b>.json"
        assert "runs/other.json" not in offered, "it is no scenario"
        assert page.complaints == []
