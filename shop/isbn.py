"""ISBN-13: the thirteen digits under the bar code (ISO 2108; check digit: weights 1 and 3, modulo 10)."""

from django.core.exceptions import ValidationError


def check_digit(first_twelve: str) -> str:
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(first_twelve))
    return str(-total % 10)


def validate_isbn13(value: str) -> None:
    """Raise ValidationError unless `value` is thirteen digits, 978 or 979 first, with the right check digit."""
    if len(value) != 13 or not (value.isascii() and value.isdigit()):
        raise ValidationError("An ISBN is thirteen digits without dashes, for example 9780000000002.")
    if not value.startswith(("978", "979")):
        raise ValidationError("An ISBN begins with 978 or 979.")
    if value[-1] != check_digit(value[:12]):
        raise ValidationError(
            f"The check digit of {value} should be {check_digit(value[:12])}: was a digit mistyped?"
        )
