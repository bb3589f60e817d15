"""Money as people read it."""


def pounds(minor: int) -> str:
    """`£12.99` for 1299 pence."""
    sign = "−" if minor < 0 else ""
    return f"{sign}£{abs(minor) // 100:,}.{abs(minor) % 100:02d}"
