"""The method is chosen by what is known about the tasks."""
