"""The simulated provider, as a process."""
