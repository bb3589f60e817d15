"""The addresses of the web process: the admin, the interface for programs, and whether it is alive."""

from django.contrib import admin
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.generic import RedirectView

from grading.api.errors import nowhere
from grading.api.interface import api


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the web process reaches its database, 503 otherwise."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
    except Exception as down:
        return JsonResponse({"database": type(down).__name__}, status=503)
    return JsonResponse({"database": "ok"})


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("admin/", admin.site.urls),
    path("api/", nowhere),
    path("api/", api.urls),
    path("api/<path:rest>", nowhere),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
