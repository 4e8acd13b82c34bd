"""WHAT IS LOOKED FOR: one module per family of checks, which read evidence and yield findings."""
