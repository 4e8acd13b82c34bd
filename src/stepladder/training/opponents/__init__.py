"""Opponents in games for two: the agent itself, past selves, an archive, single files.

`league` is what the training loop uses. `seats` chooses among many through the `Learnability`
curriculum; `archive` keeps agents on disk across runs, with ratings; `tournament` calibrates them.
Import the modules themselves: most of them load torch.
"""
