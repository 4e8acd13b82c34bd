"""How a task reaches an env, and what is said when it cannot."""

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from stepladder.envs.delivery import Delivery, TaskReceiver
from stepladder.errors import DeliveryError
from stepladder.tasks import Task
from testing_env import OptionsEnv, PracticeEnv

TASK = Task("hills", "easy", {"length": 3})


class DeafEnv(gym.Env[Any, Any]):
    """Takes no task in any way."""

    observation_space = PracticeEnv.observation_space
    action_space = PracticeEnv.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.options = options
        return self.observation_space.sample(), {}


def test_set_task_is_found_through_wrappers() -> None:
    env = PracticeEnv()
    Delivery(TimeLimit(OrderEnforcing(env), 10), "auto").reset(TASK, None, None)
    assert env.task == TASK
    assert env.resets == 1


def test_set_task_of_a_wrapper_comes_before_that_of_the_env_below() -> None:
    class Renaming(gym.Wrapper[Any, Any, Any, Any]):
        def set_task(self, task: Task) -> None:
            self.env.get_wrapper_attr("set_task")(Task(f"my {task.name}"))

    env = PracticeEnv()
    Delivery(Renaming(env), "auto").reset(TASK, None, None)
    assert env.task == Task("my hills")


def test_options_are_used_when_the_metadata_says_so() -> None:
    env = OptionsEnv()
    Delivery(OrderEnforcing(env), "auto").reset(TASK, None, None)
    assert env.task == TASK


def test_options_are_used_when_asked_for_though_the_env_says_nothing() -> None:
    env = DeafEnv()
    Delivery(env, "options").reset(TASK, None, {"difficulty": 2})
    assert env.options == {"difficulty": 2, "task": TASK}


def test_options_of_the_user_are_kept_and_not_changed() -> None:
    env, options = OptionsEnv(), {"difficulty": 2}
    Delivery(env, "auto").reset(TASK, None, options)
    assert env.options == {"difficulty": 2, "task": TASK}
    assert options == {"difficulty": 2}
    other = PracticeEnv()
    Delivery(other, "method").reset(TASK, None, options)
    assert other.options is options


def test_a_function_gets_env_and_task_before_the_reset() -> None:
    seen: list[Any] = []
    env = DeafEnv()
    delivery = Delivery(env, lambda env, task: seen.append((env, task)))
    delivery.reset(TASK, None, None)
    assert seen == [(env, TASK)]
    assert env.options is None


def test_a_function_comes_before_set_task() -> None:
    env = PracticeEnv()
    Delivery(env, lambda env, task: setattr(env, "task", Task("own way"))).reset(TASK, None, None)
    assert env.task == Task("own way")


def test_the_seed_reaches_the_env() -> None:
    env = PracticeEnv()
    Delivery(env, "auto").reset(TASK, 17, None)
    Delivery(env, "auto").reset(TASK, None, None)
    assert env.seeds == [17, None]


def test_an_env_without_any_way_is_refused_with_all_three_fixes() -> None:
    with pytest.raises(DeliveryError) as raised:
        Delivery(OrderEnforcing(DeafEnv()), "auto")
    message = str(raised.value)
    assert "DeafEnv" in message
    for fix in ("set_task(task)", "deliver='options'", "deliver=function(env, task)"):
        assert fix in message


def test_a_method_that_is_asked_for_must_be_there() -> None:
    with pytest.raises(DeliveryError, match="no method set_task"):
        Delivery(DeafEnv(), "method")


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(DeliveryError, match="got 'pigeon'"):
        Delivery(DeafEnv(), "pigeon")  # type: ignore[arg-type]


# Where no curriculum draws.


def test_a_receiver_hands_its_task_on_at_every_reset_in_the_way_it_was_told() -> None:
    env = DeafEnv()
    given: list[Any] = []
    receiver = TaskReceiver(env, lambda inner, task: given.append((inner, task)))
    receiver.reset(seed=1)
    assert given == []
    receiver.set_task(Task("a"))
    receiver.reset(seed=1)
    receiver.reset()
    assert given == [(env, Task("a"))] * 2
    with pytest.raises(DeliveryError, match="offers no way to receive a task"):
        TaskReceiver(DeafEnv())
