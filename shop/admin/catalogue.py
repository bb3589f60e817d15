"""What people may change: a book's and a publisher's particulars, and a count of the shelf."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import Model
from django.http import HttpRequest
from django.utils.safestring import SafeString

from marlow import clock
from shop.admin.record import Fields, Readable, link, moment
from shop.models import Book, Publisher, StockCount
from shop.money import pounds


@admin.register(Publisher)
class PublisherAdmin(Readable):
    list_display = ["name"]
    search_fields = ["name"]


@admin.register(Book)
class BookAdmin(Readable):
    """Stock is shown and never typed in: only holds, releases and deliveries move it."""

    list_display = ["title", "author", "isbn", "publisher", "price", "stock", "shelf"]
    list_select_related = ["publisher"]
    list_filter = [("publisher", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["title", "author", "isbn"]
    search_help_text = "A title, an author or an ISBN"
    readonly_fields = ["stock", "shelf"]
    fields = ["title", "author", "isbn", "publisher", "price_minor", "stock", "shelf"]

    @admin.display(description="price", ordering="price_minor")
    def price(self, book: Book) -> str:
        return pounds(book.price_minor)

    @admin.display(description="shelf")
    def shelf(self, book: Book) -> SafeString | str:
        return link("shop_shelf_book", "its shelf", book.pk) if book.pk else "–"

    def get_readonly_fields(self, request: HttpRequest, obj: Book | None = None) -> list[str]:
        """A book's ISBN is what it is, once it is in the catalogue."""
        return [*self.readonly_fields, "isbn"] if obj else list(self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Book, form: Any, change: bool) -> None:
        """Only what was typed in: the stock read with the book may be old by now, and writing it back undoes a hold.

        browser   read the book, stock 2 ────────────────────────── write title *and stock 2*
        checkout                            stock 2 → 1, a hold
        """
        obj.save(update_fields=form.changed_data if change else None)


class ChosenBook(AutocompleteSelect):
    """A book by its number; what is no number names no book, and the form says so."""

    def optgroups(self, name: str, value: Sequence[str], attr: dict[str, Any] | None = None) -> Any:
        return super().optgroups(name, [one for one in value if str(one).isdecimal()], attr)


@admin.register(StockCount)
class StockCountAdmin(Readable):
    """Added by whoever stood before the shelf; who and when are set here, not typed in. Then it stays as it was."""

    list_display = ["book", "copies", "counted_by", moment("at")]
    list_select_related = ["book"]
    list_filter = ["counted_by"]
    search_fields = ["book__title", "book__isbn"]
    date_hierarchy = "at"
    autocomplete_fields = ["book"]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Fields:
        return ["book", "copies", *(["counted_by", moment("at")] if obj else [])]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["widget"] = ChosenBook(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: StockCount, form: Any, change: bool) -> None:
        obj.counted_by, obj.at = request.user.get_username(), clock.live().now()
        super().save_model(request, obj, form, change)
