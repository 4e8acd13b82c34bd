"""WHAT IS SHOWN: pages made from runs; reads runs, never training."""

from stepladder.dashboard.report import write_report

__all__ = ["write_report"]
