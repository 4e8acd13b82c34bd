"""WHAT IS WRONG, AND HOW TO FIX IT: checks of envs, configs, runs, before an hour is lost.

`examination` gathers evidence and asks the checks of `registry`. An env is played by `probes` in a
process of its own (`process`, `child`); `checks` read what was measured and yield findings.
"""

from stepladder.diagnosis.examination import Diagnosis, doctor
from stepladder.diagnosis.finding import Check, Finding, check, error, note, warning

__all__ = ["Check", "Diagnosis", "Finding", "check", "doctor", "error", "note", "warning"]
