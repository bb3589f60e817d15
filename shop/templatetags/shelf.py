"""The shelf's figures in words, for templates."""

from django import template

from shop import words
from shop.money import pounds as money

register = template.Library()
MEANS = {True: "the catalogue promises what no shelf holds", False: "on the shelf, promised to nobody"}


@register.filter
def pounds(minor: int) -> str:
    return money(minor)


@register.filter
def copies(number: int) -> str:
    """`1 copy`, `2 copies`."""
    return words.count(number, "copy", "copies")


@register.filter
def in_words(difference: int) -> str:
    """A difference without looking at its colour: `2 phantom copies`, `1 lost copy`, `agrees`."""
    if not difference:
        return "agrees"
    kind = "phantom" if difference > 0 else "lost"
    return words.count(abs(difference), f"{kind} copy", f"{kind} copies")


@register.filter
def meaning(difference: int) -> str:
    """What such a difference means to a buyer or to the shop; empty where there is none."""
    return MEANS[difference > 0] if difference else ""


@register.filter
def tone(difference: int) -> str:
    """The class that colours it."""
    if not difference:
        return "good"
    return "bad" if difference > 0 else "warn"


@register.filter
def signed(number: int) -> str:
    return f"+{number}" if number > 0 else f"−{abs(number)}" if number < 0 else "0"


@register.filter
def size(number: int) -> int:
    return abs(number)


@register.filter
def times(number: int) -> str:
    return words.times(number)
