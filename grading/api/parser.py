"""A request's body, before anything believes it: JSON, of a bounded length."""

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from exercises.handed.answers import MOST

LONGEST = 6 * MOST + 4096  # bytes: a character of an answer may be written as \\u1234


class NotABody(Exception):
    """It can't be read, with a sentence. `status`: as HTTP has it; `code`: one word or two for programs."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


def demand_bounded(request: HttpRequest) -> None:
    """By its headers alone. Raises NotABody."""
    said = request.META.get("CONTENT_LENGTH") or "0"
    if not said.isdecimal() or not said.isascii() or int(said[:20]) > LONGEST:
        raise NotABody(413, "too long", f"This is longer than any answer: {LONGEST:,} bytes are taken at the most.")
    if int(said) and request.content_type != "application/json":
        raise NotABody(415, "not json", "Send JSON, with the header Content-Type: application/json.")


class Strict(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        """Raises NotABody, which the library hides behind an error of its own."""
        return _loaded(request.body)


def _loaded(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse)
    except RecursionError as deep:
        raise NotABody(400, "not json", "This is nested too deeply: send what the exercise asks for.") from deep
    except ValueError as garbled:
        raise NotABody(400, "not json", f"This is no JSON: {garbled}.") from garbled


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON's")
