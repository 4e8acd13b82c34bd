"""Examples of every command: what stands below its help.

Command lines that work as they are, or with a run or file of the user's own.
"""

from stepladder.training.pretrained import pretrained_names

POLICY = pretrained_names()[0]
"""One that comes with the package."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "new": (("new my_env", "a project in the folder my_env"),),
    "simulate": (
        ("simulate", "a chain of ten tasks, in seconds"),
        ("simulate frontier --probing 0.1 --scenario grid-6x6", "another curriculum and scenario"),
    ),
    "compare": (
        ("compare --scenarios chain-10 grid-6x6 --num-seeds 16", "the usual curricula"),
        ("compare --curricula frontier uniform --picture compare.svg", "two, with a picture"),
    ),
    "sweep": (
        ("sweep --curriculum frontier --grid probing=0.05,0.1,0.2", "every value, over seeds"),
        (
            "sweep --curriculum frontier --optuna-trials 40 --range probing=0.01..0.5:log",
            "a search that learns from its trials",
        ),
    ),
    "calibrate": (
        (
            "calibrate runs/first --out mine.json",
            "then: stepladder compare --scenarios mine.json",
        ),
    ),
    "train": (
        ("train", "PPO climbs the stages of a platform game"),
        ("train cartpole --seed 1 --total-steps 50000", "a preset, changed"),
        ("train --env my_env:MyEnv --tasks my_env:TASKS", "an env of your own"),
        ("train --seeds 5", "a run per seed, and a table with intervals over them"),
        ("train --resume runs/first", "after Ctrl-C, a crash or a kill"),
    ),
    "eval": (
        ("eval runs/first --levels test", "drawn and best actions beside random play"),
        (f"eval --pretrained {POLICY} --episodes 100", "a policy that comes with the package"),
    ),
    "doctor": (
        ("doctor my_env:MyEnv --tasks my_env:TASKS", "an env of your own, before an hour is lost"),
        ("doctor runs/first", "a run that does not learn"),
    ),
    "dashboard": (
        ("dashboard", "all runs in the folder runs, and sweeps in the folder sweeps"),
        ("dashboard runs/first --port 8700", "one run, at a port of your choice"),
    ),
    "explain": (("explain runs/first --top 5", "why each stage and task stands where it does"),),
    "report": (("report runs/first runs/second", "two runs in the same plots"),),
    "tune": (("tune CartPole-v1", "how many envs and workers are fastest here"),),
    "watch": (
        (f"watch --pretrained {POLICY}", "a trained policy, in a window"),
        ("watch runs/first --out film.gif", "what a run has learnt, as a film"),
    ),
    "play": (
        (f"play {POLICY}", "against the policy that comes with the package"),
        (f"play {POLICY} --against runs/first", "against what a run has learnt"),
        (f"play {POLICY} --speed 0.7", "a little slower"),
    ),
    "completion": (("completion bash", "the script for bash"),),
}
"""By command: lines without the name of the program, and what each does."""


def examples_text(verb: str) -> str:
    """Return the examples of a command as its help shows them; empty if there are none."""
    lines = [(f"  stepladder {line}", text) for line, text in EXAMPLES.get(verb, ())]
    if not lines:
        return ""
    # A long line has its text below it.
    return "\n".join(["examples:", *(f"{line}\n      {text}" for line, text in lines)])
