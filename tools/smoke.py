"""Try an installed wheel: what the core, or one extra, promises must work.

``make package`` installs the wheel into an empty virtual environment, for the core and then for
each extra with those it stands on, and calls this file: ``python smoke.py cli``. It runs in a
folder outside the repository, so that nothing but the wheel can be imported.
"""

import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from importlib.metadata import distribution
from pathlib import Path


def command(line: str) -> str:
    """Run ``python -m stepladder`` with the words of a line and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "stepladder", *line.split()],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"stepladder {line} failed ({done.returncode}): {done.stderr}")
    return done.stdout


def core() -> None:
    """Draw, report and save without any extra; step envs in a worker process."""
    import stepladder
    from stepladder import LearningProgress, Snapshot, Task, make_vec

    package = Path(stepladder.__file__).parent
    assert package.parent.name == "site-packages", f"imported from {package}, not from the wheel"
    assert (package / "py.typed").exists()
    assert stepladder.__version__ == distribution("stepladder").version
    assert "torch" not in sys.modules
    curriculum = LearningProgress([Task("a"), Task("b")], seed=0)
    for _ in range(100):
        curriculum.report(curriculum.draw_one(), success=True)
    curriculum.snapshot().save("curriculum.npz")
    Snapshot.load("curriculum.npz")
    envs = make_vec("CartPole-v1", num_envs=4, num_workers=1)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.close()
    games = make_vec("stepladder/Ledge-v0", num_envs=4)
    games.reset(seed=0)
    games.close()


def cli() -> None:
    """Run a simulation, and find the files that the report needs in the wheel."""
    assert "simulate" in command("--help")
    assert "mastered" in command("simulate --scenario chain-2 --out run")
    command("report run")
    command("new my_env")
    assert Path("my_env/my_env/env.py").exists()
    assert Path("report.html").stat().st_size > 10_000


def dashboard() -> None:
    """Serve a run, and ask for the page and for what it shows."""
    from stepladder.dashboard.server.serving import DashboardServer

    command("simulate --scenario chain-2 --out shown")
    server = DashboardServer(["shown"])
    threading.Thread(target=server.serve, daemon=True).start()
    for address, wanted in (
        ("", "live.js"),
        ("static/live.js", "start("),
        ("api/overview", "shown"),
    ):
        with urllib.request.urlopen(server.address + address, timeout=30) as answer:
            assert wanted in answer.read().decode(), address
    server.stop()


def plot() -> None:
    """Draw a comparison, as SVG and as PNG."""
    for name in ("a.svg", "a.png"):
        line = f"compare --scenarios chain-2 --num-seeds 2 --curricula frontier --picture {name}"
        assert command(line).endswith(f"picture: {name}\n")
        assert Path(name).stat().st_size > 1_000


def notebook() -> None:
    """Look at a run as a notebook does."""
    from stepladder.runs import Run

    with Run.create("looked-at", kind="loop") as writer:
        for step in (10, 20):
            writer.log(step, {"env_curriculum_stats/per_label_probs/a": 1.0})
    run = Run("looked-at")
    assert run.metrics().to_pandas().shape == (2, 2)
    assert "<svg" in run._repr_html_()


def train() -> None:
    """Train, stop, resume and evaluate."""
    command("train cartpole --total-steps 2000 --out trained")
    command("train --resume trained --total-steps 4000")
    command("eval trained --episodes 2")
    assert "hockey (PPO)" in command("eval --pretrained hockey --episodes 4")


def sweep() -> None:
    """Search with Optuna."""
    search = "--optuna-trials 2 --range probing=0.01..0.5:log"
    command(f"sweep --scenario chain-2 --curriculum frontier --num-seeds 2 --out sweep {search}")


def sb3() -> None:
    """Train PPO of Stable-Baselines3."""
    from stable_baselines3 import PPO

    from stepladder import make_vec
    from stepladder.envs.sb3 import as_vec_env

    envs = as_vec_env(make_vec("CartPole-v1", num_envs=2, num_workers=0))
    PPO("MlpPolicy", envs, n_steps=32, batch_size=32, device="cpu").learn(64)
    envs.close()


def tensorboard() -> None:
    """Log a simulation to TensorBoard."""
    command("simulate --scenario chain-2 --out board --tensorboard")
    assert list(Path().rglob("*tfevents*"))


def wandb() -> None:
    """Log a simulation to Weights & Biases, offline."""
    command("simulate --scenario chain-2 --out wandb-run --wandb smoke --wandb-mode offline")


def watch() -> None:
    """Make films of a game."""
    for kind in ("gif", "mp4"):
        command(f"watch stepladder/Ledge-v0 --episodes 1 --out film.{kind}")
        assert Path(f"film.{kind}").stat().st_size > 1_000


def export() -> None:
    """Train a moment, and write the policy for other programs."""
    from stepladder import train

    policy = train(env="CartPole-v1", total_steps=512, num_workers=0).policy
    for name in ("policy.onnx", "policy.pt"):
        assert policy.export(name).stat().st_size > 1_000


TRIALS = (
    core,
    cli,
    dashboard,
    plot,
    notebook,
    train,
    sweep,
    sb3,
    tensorboard,
    wandb,
    watch,
    export,
)

if __name__ == "__main__":
    trials = {trial.__name__: trial for trial in TRIALS}
    if len(sys.argv) != 2 or sys.argv[1] not in trials:
        sys.exit(f"usage: python smoke.py {'|'.join(trials)}; got {sys.argv[1:]}")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        trials[sys.argv[1]]()
        os.chdir("/")
    print(f"{sys.argv[1]}: works")
