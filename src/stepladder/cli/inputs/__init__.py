"""WHAT A COMMAND LINE NAMES: its arguments, and the envs, policies and runs they stand for."""
