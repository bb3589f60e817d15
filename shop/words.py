"""Numbers as people say them."""


def count(number: int, noun: str, nouns: str = "") -> str:
    """`1 order`, `14 orders`; `2 copies` where `nouns` says so."""
    return f"{number:,} {noun if abs(number) == 1 else nouns or noun + 's'}"


def times(number: int) -> str:
    """`never`, `once`, `twice`, `3 times`."""
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")
