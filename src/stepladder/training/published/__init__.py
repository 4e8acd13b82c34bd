"""Configs of the published hockey trainer: read as they are, turned into ours."""
