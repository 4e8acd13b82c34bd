"""WHAT A COMMAND SHOWS: lines, live pictures, tables, what a policy has learnt, episodes played."""
