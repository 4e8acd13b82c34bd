"""WHAT GOES OUT AND COMES BACK: the plan that envs draw from, draws, and records of episodes."""
