"""The Friday after: two copies of the novel are sold and shipped, and somebody goes to the shelf and counts."""

from collections.abc import Callable

from marlow.clock import Clock
from shop.checkout import SoldOut, checkout, dispatch
from shop.models import Book, Order, StockCount
from shop.provider.answers import Provider
from shop.shelf import shelf


def sell_and_count(
    title: str, copies: int, *, provider: Provider, clock: Clock, ids: Callable[[], str]
) -> list[Order]:
    """Sell and dispatch up to so many copies of a book, then count its shelf. Returns the orders shipped."""
    book = Book.objects.get(title=title)
    orders = []
    for _ in range(copies):
        try:
            order = checkout(book, "a Friday reader", provider=provider, clock=clock, ids=ids)
        except SoldOut:
            break
        if order.status == Order.Status.PAID:
            dispatch(order, clock, by="packing staff")
            orders.append(order)
    on_shelf = shelf(Book.objects.filter(pk=book.pk)).get().on_shelf
    StockCount.objects.create(book=book, copies=max(0, on_shelf), counted_by="packing staff", at=clock.now())
    return orders
