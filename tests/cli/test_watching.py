"""A simulation while it runs: a picture in a terminal, a few lines elsewhere."""

import io

from rich.console import Console

from stepladder.cli.watching import Watch, blocks

LOGGED = {
    "metric/agent_step": 1600.0,
    "overview/mastered_fraction": 0.5,
    "overview/mean_performance": 0.456,
    "overview/steps_per_second": 12345.6,
    "env_task_dependency/num_learnable": 10.0,
    "env_task_dependency/success": 0.25,
    "env_task_dependency/share_mastered": 0.2,
    "env_task_dependency/share_locked": 0.41,
    "env_task_dependency/share_impossible": 0.0,
    "env_task_dependency/per_label_performance/taskclass0": 1.0,
    "env_task_dependency/per_label_performance/taskclass1": 0.5,
    "env_task_dependency/per_label_performance/taskclass2": 0.0,
    "env_curriculum_stats/per_label_samples/taskclass0": 0.0,
    "env_curriculum_stats/per_label_samples/taskclass1": 100.0,
    "env_curriculum_stats/per_label_samples/taskclass2": 25.0,
    "env_curriculum_stats/per_label_samples/other": 900.0,
}


def shown(num_epochs: int, *epochs: int, terminal: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, color_system=None)
    with Watch("frontier on chain-10", num_epochs, console) as watch:
        for epoch in epochs:
            watch(epoch, LOGGED)
    return file.getvalue()


def test_a_pipe_gets_the_title_and_a_line_for_every_tenth_of_the_epochs() -> None:
    lines = shown(100, *range(100)).splitlines()
    assert lines[0] == "frontier on chain-10"
    assert lines[1] == (
        "epoch  10/100      1,600 plays  mastered  5/10  mean skill 0.46  success 0.25"
    )
    assert [int(line.split("/")[0].split()[1]) for line in lines[1:]] == list(range(10, 101, 10))


def test_the_last_epoch_is_always_shown_and_few_epochs_all() -> None:
    assert len(shown(3, 0, 1, 2).splitlines()) == 4
    assert "epoch 25/25" in shown(25, *range(25)).splitlines()[-1]


def test_a_terminal_gets_skill_and_practice_task_by_task() -> None:
    picture = shown(100, 15, terminal=True)
    assert "epoch 16/100" in picture
    assert "1,600 plays 12,346/s" in picture
    assert "skill    █▄ " in picture
    # Relative to the task with most plays; what is logged of others together is no task.
    assert "practice  █▂" in picture
    assert "wasted on tasks mastered 20%, locked 41%, impossible 0%" in picture


def test_the_picture_fits_a_narrow_terminal() -> None:
    for width in (40, 80, 120):
        for line in shown(100, 15, terminal=True, width=width).splitlines():
            plain = line.replace("\x1b[?25l", "").replace("\x1b[?25h", "")
            assert len(plain) <= width


def test_nothing_is_said_before_the_first_epoch_or_without_a_console() -> None:
    assert shown(100) == ""
    with Watch("title", 10, None) as watch:
        watch(9, LOGGED)


def test_blocks_show_everything_above_nothing_and_share_room_when_there_is_little() -> None:
    assert blocks([0.0, 0.01, 0.5, 1.0, 7.0], 10) == " ▁▄██"
    assert blocks([1.0, 0.0, 0.5, 0.5], 2) == "▄▄"
    assert len(blocks([0.5] * 1000, 37)) == 37
    assert blocks([], 10) == ""
