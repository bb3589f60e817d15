"""Rows of the admin's lists as cards on a phone: every cell carries its column's name."""

from collections.abc import Iterable

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def labelled(cells: Iterable[SafeString], headers: Iterable[dict[str, str]]) -> list[SafeString]:
    """The admin's ready-made `<td>` and `<th>` cells, with `data-label` set to the header over each."""
    return [_label(cell, header) for cell, header in zip(cells, headers, strict=False)]


def _label(cell: SafeString, header: dict[str, str]) -> SafeString:
    tag, rest = cell[:3], cell[3:]
    if tag not in ("<td", "<th") or "checkbox" in header.get("class_attrib", ""):
        return cell
    label = format_html(' data-label="{}"', str(header["text"]).capitalize())
    return mark_safe(tag + label + rest)  # noqa: S308  both halves are the admin's own escaped cell
