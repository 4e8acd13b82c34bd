"""WHAT IS DONE TO AN ENV: each probe plays it in one way and returns plain values."""
