"""JSON by hand, in every file that a command reads: one line that says what is wrong with it."""

import os
from pathlib import Path

import pytest

from cli.command_line import CommandLine

TEXTS = {
    "deep lists": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "deep in a field": '{"env": ' + "[" * 5_000 + "]" * 5_000 + "}",
    "deep parents": '{"parents": ' + "[" * 500 + "]" * 500 + "}",
    "not closed": "[" * 100_000,
    "NaN": '{"parents": [[]], "features": {"a": [NaN]}}',
    "infinity": '{"seed": Infinity}',
    "beyond all floats": '{"total_steps": 1e400}',
    "beyond all numbers": '{"total_steps": ' + "9" * 100_000 + "}",
    "a key twice": '{"env": "CartPole-v1", "env": "CartPole-v1"}',
    "no UTF-8": '{"env": "\udcff"}',
    "zeros": "\x00" * 100,
    "nothing": "",
    "null": "null",
}

COMMANDS = {
    "config": ("train", "bad.json"),
    "curriculum": ("train", "--curriculum", "bad.json"),
    "settings": ("simulate", "from-file", "bad.json", "--num-epochs", "1"),
    "graph": ("simulate", "--scenario", "bad.json"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", COMMANDS)
def test_bad_json_is_told_in_one_line(command: CommandLine, kind: str, name: str) -> None:
    Path("bad.json").write_bytes(TEXTS[name].encode(errors="surrogateescape"))
    said = command.fails(*COMMANDS[kind])
    assert len(said) < 1_000
    assert "bad.json" in said or kind == "graph"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(command: CommandLine, kind: str) -> None:
    os.mkfifo("bad.json")
    said = command.fails(*COMMANDS[kind])
    assert "bad.json" in said
