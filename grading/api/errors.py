"""What goes wrong, as a program gets it: a status, a `code` to act on, a sentence in `detail`; never a traceback."""

import logging
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from exercises.handed.answers import NotAnswers
from exercises.handed.exercise import NoExercise
from grading.api.parser import NotABody
from grading.api.told import GONE
from grading.handin import NoReceipt, Refused
from grading.threads import NotAPost

log = logging.getLogger(__name__)
STATUS = {
    "stranger": 403,
    "gone": 404,
    "not open yet": 409,
    "closed": 409,
    "no attempts left": 409,
    "receipt taken": 409,
    "other answers": 409,
    "too soon": 429,
}
UNKNOWN = "Send a token that stands, with the header Authorization: Bearer …; tokens are made in the admin."


class TooSoon(Refused):
    """With the seconds to wait."""

    def __init__(self, sentence: str, seconds: int) -> None:
        super().__init__("too soon", sentence)
        self.seconds = seconds


def said(status: int, code: str, detail: str, problems: Mapping[str, str] | None = None) -> HttpResponse:
    body: dict[str, Any] = {"code": code, "detail": detail}
    return JsonResponse(body if problems is None else {**body, "problems": problems}, status=status)


def nowhere(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Whatever else is asked for below /api/."""
    return said(404, "not found", "There is nothing at this address: /api/openapi.json lists what there is.")


def listen(api: NinjaAPI) -> None:
    """Each exception its answer."""
    api.add_exception_handler(AuthenticationError, _no_token)
    api.add_exception_handler(NotABody, _not_a_body)
    api.add_exception_handler(HttpError, _not_a_body)
    api.add_exception_handler(UnreadablePostError, _broken_off)
    api.add_exception_handler(ValidationError, _not_valid)
    api.add_exception_handler(NotAnswers, _not_answers)
    api.add_exception_handler(Refused, _refused)
    api.add_exception_handler(NotAPost, _not_a_post)
    api.add_exception_handler(PermissionDenied, _not_yours)
    api.add_exception_handler(NoExercise, _no_exercise)
    for missing in (NoReceipt, Http404):
        api.add_exception_handler(missing, _not_there)
    api.add_exception_handler(Exception, _broken)


def _no_token(request: HttpRequest, error: Any) -> HttpResponse:
    answer = said(401, "no token", UNKNOWN)
    answer["WWW-Authenticate"] = "Bearer"
    return answer


def _not_a_body(request: HttpRequest, error: Any) -> HttpResponse:
    told = error if isinstance(error, NotABody) else error.__cause__
    if isinstance(told, NotABody):
        return said(told.status, told.code, str(told))
    return said(400, "not json", "This body can’t be read: send JSON.")


def _broken_off(request: HttpRequest, error: Any) -> HttpResponse:
    return said(400, "broken off", "The request broke off before its end: send it again.")


def _not_a_post(request: HttpRequest, error: Any) -> HttpResponse:
    return said(422, "not a post", str(error))


def _not_there(request: HttpRequest, error: Any) -> HttpResponse:
    return said(404, "not found", str(error))


def _no_exercise(request: HttpRequest, error: Any) -> HttpResponse:
    """The cause is for who judges and who teaches."""
    return said(404, "gone", GONE)


def _not_valid(request: HttpRequest, error: Any) -> HttpResponse:
    """What is wrong around the answers: `text`, `skip`, `Idempotency-Key`."""
    problems: dict[str, str] = {}
    for one in error.errors:
        where = [str(part) for part in one["loc"] if part not in ("body", "query", "path", "header", "given")]
        problems.setdefault(".".join(where) or "body", f"{one['msg'].rstrip('.')}.")
    return said(422, "not valid", "Something in this request is not as it should be.", problems)


def _not_answers(request: HttpRequest, error: Any) -> HttpResponse:
    return said(422, "not answers", "This is no answer to that exercise.", error.problems)


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    answer = said(STATUS[error.code], error.code, str(error))
    if isinstance(error, TooSoon):
        answer["Retry-After"] = str(error.seconds)
    return answer


def _not_yours(request: HttpRequest, error: Any) -> HttpResponse:
    return said(403, "not yours", str(error) or "This is not yours to see or to do.")


def _broken(request: HttpRequest, error: Any) -> HttpResponse:
    log.error("The interface broke at %s", request.path, exc_info=error)
    return said(500, "broken", "This failed here, and not through you: try again, and then tell your instructor.")
