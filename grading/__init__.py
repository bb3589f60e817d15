"""Answers that were handed in, and what became of them. Time here is the real clock, never the shop's."""
