"""The dashboard over HTTP: who may ask, what is sent, and what hostile folders can do."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_runs import make_run

from stepladder.dashboard.answers import OF_A_RUN
from stepladder.dashboard.run_index import RunIndex
from stepladder.dashboard.server.app import make_app, news
from stepladder.dashboard.server.guard import LOOPBACK, Access
from stepladder.dashboard.server.serving import open_socket
from stepladder.errors import ConfigError, RunError
from stepladder.runs import Run


class Client:
    """Asks an app without a network."""

    def __init__(self, folder: Path, access: Access | None = None):
        self.app = make_app(RunIndex([folder]), access or Access(), threading.Event())
        self.cookies: dict[str, str] = {}

    def __call__(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            address = "http://127.0.0.1:7717"
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            async with httpx.AsyncClient(
                transport=transport, base_url=address, cookies=self.cookies
            ) as client:
                return await client.request(method, path, headers=named)

        return asyncio.run(ask())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs" / "a", num_epochs=4)
    return tmp_path / "runs"


def test_page_files_and_answers_carry_the_policy(runs: Path) -> None:
    ask = Client(runs)
    for path in ("/", "/static/live.js", "/vendor/uplot/uPlot.min.css", "/api/overview", "/nope"):
        headers = ask(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert ask("/static/live.js").headers["content-type"].startswith("text/javascript")
    assert ask("/api/overview").json()["runs"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:7717"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
        ({"host": "[::1]:7717"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:7717"}, 403),
        ({"host": ""}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 200),
    ],
)
def test_other_names_and_other_sites_are_refused(
    headers: dict[str, str], status: int, runs: Path
) -> None:
    assert Client(runs)("/api/overview", **headers).status_code == status


def test_a_request_that_changes_something_comes_from_the_page_itself(runs: Path) -> None:
    ask = Client(runs)
    assert ask("/api/overview", "POST", origin="http://evil.example").status_code == 403
    assert ask("/api/overview", "POST", origin="http://127.0.0.1:7717").status_code == 405


def test_a_token_is_needed_once_and_leaves_the_address(runs: Path) -> None:
    ask = Client(runs, Access(hosts=("127.0.0.1",), token="secret"))
    assert ask("/").status_code == 401
    assert ask("/api/overview").status_code == 401
    assert ask("/?token=wrong").status_code == 401
    entered = ask("/?token=secret&x=1")
    assert (entered.status_code, entered.headers["location"]) == (303, "/?x=1")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    ask.cookies["stepladder-token"] = "secret"
    assert ask("/api/overview").status_code == 200
    ask.cookies["stepladder-token"] = "secret2"
    assert ask("/api/overview").status_code == 401


def test_no_request_leaves_the_folder_of_runs(runs: Path) -> None:
    outside = make_run(runs.parent / "outside", num_epochs=2)
    (outside / "film.gif").write_bytes(b"film")
    (runs / "link").symlink_to(outside)
    (runs / "a" / "film.gif").write_bytes(b"film")
    ask = Client(runs)
    for name in (
        "../outside",
        str(outside),
        "link",
        "a/../../outside",
        ".",
        "a\0",
        "%2e%2e/outside",
    ):
        answer = ask(f"/api/story?{httpx.QueryParams(run=name)}")
        assert answer.status_code == 422, name
        assert "there is no run" in answer.json()["problem"]
    for name in ("../../outside/film.gif", "/etc/hostname", "run.sqlite", "film.gif\0", ""):
        assert ask(f"/film?{httpx.QueryParams(run='a', name=name)}").status_code == 404, name
    assert ask("/film?run=a&name=film.gif").content == b"film"
    for path in ("/static/../answers.py", "/static/%2e%2e/answers.py", "/vendor//etc/hostname"):
        assert ask(path).status_code == 404, path
    assert ask("/api/nothing").status_code == 422


def half_written(folder: Path) -> None:
    content = (folder / "run.sqlite").read_bytes()
    (folder / "run.sqlite").write_bytes(content[: len(content) // 2])


def pipe(folder: Path) -> None:
    (folder / "run.sqlite").unlink()
    os.mkfifo(folder / "run.sqlite")


def broken(*statements: str) -> Any:
    def damage(folder: Path) -> None:
        import sqlite3

        connection = sqlite3.connect(folder / "run.sqlite", isolation_level=None)
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return damage


DAMAGES: dict[str, Any] = {
    "no database": lambda folder: (folder / "run.sqlite").unlink(),
    "an empty database": lambda folder: (folder / "run.sqlite").write_bytes(b""),
    "half a database": half_written,
    "a pipe": pipe,
    "no JSON": lambda folder: (folder / "config.json").write_text("{"),
    "deep JSON": lambda folder: (folder / "config.json").write_text("[" * 100_000),
    "a foreign config": lambda folder: (folder / "config.json").write_text("{}"),
    "a view": broken("CREATE VIEW v AS SELECT 1"),
    "texts as numbers": broken("UPDATE metrics SET value = 'x'", "UPDATE steps SET time = 'x'"),
    "huge numbers": broken(
        "UPDATE metrics SET value = 9e999",
        f"UPDATE metrics SET step = {2**63 - 1} WHERE step > 23999",
    ),
    "odd events": broken(
        "UPDATE events SET data = '[1]', kind = 'evaluation'",
        "INSERT INTO events VALUES (99, 1, 1, 'stage_advanced', 'x', '{\"from_stage\": []}')",
        "INSERT INTO events VALUES (98, 1, 1, 'evaluation', 'x', "
        '\'{"way": "best", "total": {"name": [], "parts": [1], "rate": {"value": "x"}}}\')',
    ),
    "odd tasks": broken("UPDATE task_columns SET data = x'00', kind = 'f8'"),
    "an odd standing": broken(
        'INSERT INTO settings VALUES (\'curriculum\', \'{"stages": [7], "stage_index": 0,'
        ' "limits": [], "phase": "x", "inner": {"curriculum": "Frontier", "num_tasks": "x"}}\')'
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_run_says_so_and_the_others_are_shown(damage: Any, runs: Path) -> None:
    damage(make_run(runs / "broken", num_epochs=4))
    ask = Client(runs)
    rows = {row["name"]: row for row in ask("/api/overview").json()["runs"]}
    assert rows["a"]["status"] == "finished"
    assert "broken" in rows
    for question in OF_A_RUN:
        answer = ask(f"/api/{question}?run=broken&name=overview/reward&of=samples")
        assert answer.status_code in (200, 422), question
        if answer.status_code == 422:
            assert len(answer.json()["problem"].splitlines()) == 1


def test_news_name_the_runs_that_have_changed(runs: Path) -> None:
    class Reader:
        async def is_disconnected(self) -> bool:
            return False

    async def read() -> list[str]:
        stream = news(RunIndex([runs]), Reader(), threading.Event(), pause_s=0.01)
        first = [await anext(stream), await anext(stream)]
        with Run.create(runs / "new", kind="training", config={}) as run:
            run.log(1, {"x": 1.0})
        found = await anext(stream)
        while not found.startswith("data"):
            found = await anext(stream)
        await stream.aclose()
        return [*first, found]

    retry, quiet, changed = asyncio.run(read())
    assert retry.startswith("retry")
    assert quiet.startswith(":")
    assert json.loads(changed.removeprefix("data: ")) == ["new"]


def test_a_port_that_is_taken_is_one_line_and_another_is_found_without_it() -> None:
    first = open_socket("127.0.0.1", None)
    port = first.getsockname()[1]
    with pytest.raises(ConfigError, match=rf"cannot listen at 127.0.0.1:{port} \(.*\). Choose"):
        open_socket("127.0.0.1", port)
    second = open_socket("127.0.0.1", None)
    assert second.getsockname()[1] != port
    with pytest.raises(ConfigError, match="Choose another --host"):
        open_socket("no such host", None)
    for listener in (first, second):
        listener.close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere is not a folder"):
        RunIndex([tmp_path / "nowhere"])


def test_links_and_hidden_folders_hold_no_runs_and_loops_end(runs: Path) -> None:
    (runs / "loop").symlink_to(runs)
    make_run(runs / ".hidden", num_epochs=2)
    make_run(runs / "group" / "seed-0", num_epochs=2)
    assert set(RunIndex([runs]).scan()) == {"a", "group/seed-0"}
    assert LOOPBACK[0] == "127.0.0.1"


@pytest.fixture
def address(runs: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "stepladder", "dashboard", str(runs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    yield line.split()[1], process
    process.kill()
    process.communicate()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_the_command_serves_without_torch_until_ctrl_c(
    address: tuple[str, subprocess.Popen[str]],
) -> None:
    where, process = address
    assert where.startswith("http://127.0.0.1:")
    with httpx.stream("GET", f"{where}news") as stream:
        assert next(stream.iter_lines()) == "retry: 2000"
        assert httpx.get(f"{where}api/story?run=a").json()["kind"] == "simulation"
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "torch" not in maps
        process.send_signal(2)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")
