"""WHAT IS SHOWN: pictures and pages made from runs; reads runs, never training."""

from stepladder.dashboard.comparison import comparison_svg
from stepladder.dashboard.evaluation_picture import evaluation_svg
from stepladder.dashboard.report import write_report

__all__ = ["comparison_svg", "evaluation_svg", "write_report"]
