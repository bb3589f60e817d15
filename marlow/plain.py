"""What a request may not hold: a NUL byte, which no text column of Postgres takes."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest


def refuse_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: 400 for a NUL in the path, the query or a form, before any page asks the database about it."""

    def answer(request: HttpRequest) -> HttpResponse:
        texts = [request.path, *request.GET, *(text for texts in request.GET.lists() for text in texts[1])]
        if request.method == "POST":
            texts += [text for name, given in request.POST.lists() for text in (name, *given)]
        if any("\0" in str(text) for text in texts):
            return HttpResponseBadRequest("A NUL byte is no part of any text here.")
        return get_response(request)

    return answer
