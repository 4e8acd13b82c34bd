"""Completion in a shell: every command, flag and name, in scripts that the shells can read."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.command_line import CommandLine
from stepladder.cli import completion
from stepladder.cli.completion import Flag
from stepladder.cli.main import VERBS
from stepladder.training.presets import PRESETS


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash offers for a command line whose last word is being typed."""
    line = " ".join(f"'{word}'" for word in ("stepladder", *words))
    code = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _stepladder; "
    done = subprocess.run(
        ["bash", "--norc", "-euo", "pipefail", "-c", code + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        cwd=script.parent,
        timeout=20,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.processes
@pytest.mark.timeout(120)
def test_bash_completes_commands_flags_names_and_files(
    command: CommandLine, tmp_path: Path
) -> None:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    code, out, err = command("completion", "bash")
    assert (code, err) == (0, "")
    script = tmp_path / "script"
    script.write_text(out)
    (tmp_path / "a file.json").touch()
    assert completed(script, "tra") == ["train"]
    assert completed(script, "") == [*VERBS, "--help", "--version"]
    offered = completed(script, "watch", "--pretrained", "")
    assert (offered[:2], sorted(offered[2:])) == (["hockey", "ledge"], ["a file.json", "script"])
    assert completed(script, "watch", "--pre") == ["--pretrained"]
    assert completed(script, "train", "hockey-s") == ["hockey-sac", "hockey-self-play"]
    assert completed(script, "train", "--total-s") == ["--total-steps"]
    assert "--agent.gamma" in completed(script, "train", "--agent.")
    assert completed(script, "compare", "--scenarios", "chain-10") == ["chain-10", "chain-100"]
    assert completed(script, "report", "a") == ["a file.json"]
    assert completed(script, "completion", "z") == ["zsh"]


def test_flags_are_read_from_the_help_with_their_choices() -> None:
    flags = {flag.name: flag for flag in completion.flags_of("simulate")}
    assert flags["--wandb-mode"].values == ("online", "offline", "disabled")
    assert flags["--seed"].values == ()
    assert flags["--out"].text.startswith("Folder for the run.")
    assert "--help" in flags


def test_scripts_name_everything_and_texts_stay_texts() -> None:
    evil = Flag(name="--a.b", text="it's $(x) \\ `y`", values=("one", "t'wo"))
    flags = {verb: [evil] if verb == "train" else [] for verb in VERBS}
    fish = completion.fish_script(flags)
    assert "-l a.b -x -a 'one t'\"'\"'wo' -d 'it\\'s $(x) \\\\ `y`'" in fish
    assert all(f"-a {verb} -d " in fish for verb in VERBS)
    assert all(preset in fish for preset in PRESETS)
    zsh = completion.zsh_script(flags)
    assert zsh.startswith("#compdef stepladder\n")
    assert completion.bash_script(flags) in zsh


def test_an_unknown_shell_is_refused(command: CommandLine) -> None:
    assert "bash" in command.fails("completion", "tcsh")
