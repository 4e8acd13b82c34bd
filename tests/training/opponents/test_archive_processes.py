import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.member import Member
from stepladder.training.opponents.ratings import PairGames

NUM_ROUNDS = 20
DESCRIPTION = {"type": "SAC", "observation_space": {}, "action_space": {}}

DOOMED = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]).parents[2]))
from training.opponents.test_archive_processes import add_and_rate
from stepladder.training.opponents.archive import Archive

archive = Archive(sys.argv[2])
for step in range(1_000_000):
    add_and_rate(archive, "doomed", step)
"""


def add_and_rate(archive: Archive, name: str, step: int) -> None:
    weights = {"layer": torch.full((50, 50), float(step))}
    member = Member(name=name, description=DESCRIPTION, weights=weights, step=step)
    agent_id = archive.add(member, origin=name)
    archive.rate([PairGames.of(agent_id, "weak", [1, 0, -1])], origin=name, batch=step)
    assert agent_id in {entry.agent_id for entry in archive.list().entries}


def steps_of(archive: Archive, name: str) -> list[int]:
    return sorted(entry.step for entry in archive.list().entries if entry.origin == name)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_processes_add_and_rate_at_once_and_a_killed_one_breaks_nothing(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    command = [sys.executable, "-c", DOOMED, __file__, str(archive.folder)]
    with subprocess.Popen(command) as doomed:
        try:
            while not steps_of(archive, "doomed"):
                assert doomed.poll() is None
                time.sleep(0.01)
            for step in range(NUM_ROUNDS):
                add_and_rate(archive, "mine", step)
        finally:
            doomed.kill()
    archive.rate([PairGames.of("weak", "strong", [0])])

    listing, ratings = archive.list(), archive.ratings()
    assert listing.skipped == {}
    assert not list(archive.folder.glob(".*.part"))
    assert steps_of(archive, "mine") == list(range(NUM_ROUNDS))
    done = steps_of(archive, "doomed")
    assert done == list(range(len(done)))
    for entry in listing.entries:
        assert entry.load().weights["layer"][0, 0] == entry.step
    # Every game is somebody's; of the doomed one, those of the last agent may be missing.
    games = {entry.agent_id: ratings[entry.agent_id].num_games for entry in listing.entries}
    assert ratings["weak"].num_games == sum(games.values()) + 1
    assert len(games) - 1 <= sum(games.values()) / 3 <= len(games)
    # What was rated as it came is what the whole log says.
    (archive.folder / "ratings.json").unlink()
    assert archive.ratings().to_json() == ratings.to_json()
