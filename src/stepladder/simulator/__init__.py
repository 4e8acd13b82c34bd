"""PRETEND LEARNERS: dependency graphs, scenarios, engines, and comparisons of curricula.

`stepladder.simulator.puffer` is apart: it needs PufferLib.
"""

from stepladder.simulator.base import OracleRun, Scenario, Simulator
from stepladder.simulator.calibration import Calibration, calibrate
from stepladder.simulator.compare import Comparison, ComparisonCell, compare
from stepladder.simulator.dynamics import RECIPES, Epochwise, Noise, Prerequisite, recipe
from stepladder.simulator.engines import CompiledEngine, DirectEngine, EnvsEngine, make_engine
from stepladder.simulator.env import SkillView, TaskDependencyEnv
from stepladder.simulator.generalising import Generalising, GeneralisingSimulator
from stepladder.simulator.generalising.scenarios import GENERAL_SUITE, GeneralScenario
from stepladder.simulator.graph import TaskGraph
from stepladder.simulator.learner import Play, TaskDependencySimulator
from stepladder.simulator.oracle import best_oracle
from stepladder.simulator.scenarios import SUITE, GraphScenario, scenario
from stepladder.simulator.simulate import SimulationConfig, SimulationResult, simulate
from stepladder.simulator.swept import SweepConfig
from stepladder.simulator.verdict import Verdict, judge
from stepladder.sweeps import SweepResult, SweepTrial, sweep

__all__ = [
    "GENERAL_SUITE",
    "RECIPES",
    "SUITE",
    "Calibration",
    "Comparison",
    "ComparisonCell",
    "CompiledEngine",
    "DirectEngine",
    "EnvsEngine",
    "Epochwise",
    "GeneralScenario",
    "Generalising",
    "GeneralisingSimulator",
    "GraphScenario",
    "Noise",
    "OracleRun",
    "Play",
    "Prerequisite",
    "Scenario",
    "SimulationConfig",
    "SimulationResult",
    "Simulator",
    "SkillView",
    "SweepConfig",
    "SweepResult",
    "SweepTrial",
    "TaskDependencyEnv",
    "TaskDependencySimulator",
    "TaskGraph",
    "Verdict",
    "best_oracle",
    "calibrate",
    "compare",
    "judge",
    "make_engine",
    "recipe",
    "scenario",
    "simulate",
    "sweep",
]
