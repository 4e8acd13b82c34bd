from dataclasses import replace
from pathlib import Path

import pytest
import torch

from stepladder.agents import make_player
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.archive_opponents import ArchiveOpponents
from stepladder.training.opponents.entry import ENTRY_WEIGHTS
from stepladder.training.opponents.member import Member
from stepladder.training.opponents.seats import KNOWN_AFTER
from training.opponents.small_agents import small_agent, small_member


def try_out(member: Member) -> object:
    return make_player(member.description, member.weights, 1)


def opponents_of(archive: Archive, num_seats: int = 2) -> ArchiveOpponents:
    opponents = ArchiveOpponents(archive, small_agent().description(), 0, try_out, num_seats)
    opponents.look()
    return opponents


def names(opponents: ArchiveOpponents) -> set[str]:
    return {member.name for member in opponents.seats.members.values()}


def add(archive: Archive, seed: int, kind: str = "sac") -> str:
    return archive.add(small_member(seed, kind, seed), origin="elsewhere")


def test_everybody_who_fits_is_given_a_seat(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    one, odd, two = add(archive, 1), add(archive, 2, "dddqn"), add(archive, 3)
    opponents = opponents_of(archive, num_seats=8)
    assert names(opponents) == {one, two}
    assert "action_space is discrete 8" in opponents.skipped[odd]


def test_those_who_come_later_are_seen_at_the_next_look_and_those_who_left_are_gone(
    tmp_path: Path,
) -> None:
    archive = Archive(tmp_path)
    one, two = add(archive, 1), add(archive, 2)
    opponents = opponents_of(archive, num_seats=8)
    three = add(archive, 3)
    archive.remove(one)
    assert names(opponents) == {one, two}
    opponents.look()
    assert names(opponents) == {two, three}


def test_broken_weights_are_passed_over_with_the_reason(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    one, two = add(archive, 1), add(archive, 2)
    (tmp_path / one / ENTRY_WEIGHTS).write_bytes(b"")
    description = small_member(1).description
    strange = Member(name="x", description=description, weights=small_member(1, "ppo").weights)
    strange_id = archive.add(strange, origin="elsewhere")
    sick = dict(small_member(4).weights)
    name = next(iter(sick))
    sick[name] = torch.full_like(sick[name], torch.nan)
    sick_id = archive.add(replace(small_member(4), weights=sick), origin="elsewhere")
    opponents = opponents_of(archive, num_seats=8)
    assert names(opponents) == {two}
    assert "not finite" in opponents.skipped[sick_id]
    assert "digest" in opponents.skipped[one]
    assert "cannot be played with" in opponents.skipped[strange_id]


def test_where_there_are_too_many_the_least_learnable_makes_room_and_all_have_their_turn(
    tmp_path: Path,
) -> None:
    archive = Archive(tmp_path)
    everybody = {add(archive, seed) for seed in range(5)}
    opponents = opponents_of(archive)
    met = names(opponents)
    opponents.look()
    # Nobody is known well enough yet.
    assert names(opponents) == met
    for _ in range(6):
        draw = opponents.seats.draw()
        assert draw is not None
        for _ in range(KNOWN_AFTER):
            opponents.seats.report(draw, 1)
        beaten = opponents.seats.members[draw.task_id].name
        opponents.look()
        assert beaten not in names(opponents)
        assert len(opponents.seats.members) == 2
        met |= names(opponents)
    assert met == everybody


@pytest.mark.parametrize("num_looks", [1, 3])
def test_looking_again_at_the_same_archive_changes_nothing(num_looks: int, tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    add(archive, 1)
    opponents = opponents_of(archive)
    numbers = list(opponents.seats.members)
    for _ in range(num_looks):
        opponents.look()
    assert list(opponents.seats.members) == numbers
