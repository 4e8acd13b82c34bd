"""WHAT IS SHOWN: the live page over runs and the report; reads runs, never training."""

from stepladder.dashboard.report import write_report

__all__ = ["write_report"]
