"""QUESTIONS: pure functions from a run's database, which they only read, to plain values.

Rows are aggregated in SQL, so that a long run costs a page no more than a short one.
"""
