"""WHAT A USER SETS: checks of single values, and the way from documents to configs and back."""
