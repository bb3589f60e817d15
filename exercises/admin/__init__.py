"""What was played here, in the admin: performances, the cells of the lock table, and the table itself."""

from exercises.admin import locks, performance, proof

__all__ = ["locks", "performance", "proof"]
