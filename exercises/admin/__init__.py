"""What was played here, in the admin: performances, the lock table, cell by cell and whole, and the laboratory."""

from exercises.admin import laboratory, locks, performance, proof

__all__ = ["laboratory", "locks", "performance", "proof"]
