"""Whatever comes to the interface for programs gets a sentence and a code, as its document says, and no traceback."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from grading import handin, tokens
from grading.api.errors import STATUS
from grading.api.interface import api
from grading.api.parser import LONGEST
from grading.models import Attempt
from marlow.clock import real_now
from tests.grading.caller import Caller, school, told
from tests.grading.school import RIGHT

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _plain_http():
    with override_settings(SECURE_SSL_REDIRECT=False):
        yield


BODIES = [
    ("", "application/json", 422),
    ("{", "application/json", 400),
    ('{"answers": NaN}', "application/json", 400),
    ("[" * 100_000, "application/json", 400),
    ('{"answers": ' + "9" * 5000 + "}", "application/json", 400),
    (b"\xff\xfe{}", "application/json", 400),
    ("[]", "application/json", 422),
    ("null", "application/json", 422),
    ('"text"', "application/json", 422),
    ("x" * 3_000_000, "application/json", 413),
    ("x" * (LONGEST + 1), "application/json", 413),
    ("answers=1", "application/x-www-form-urlencoded", 415),
    ("{}", "text/plain", 415),
    ("--x\r\n\r\n--x--", "multipart/form-data; boundary=x", 415),
    ("{}", "", 415),
]


@pytest.mark.parametrize(
    ("body", "kind", "status"), BODIES, ids=[f"{kind[:12]} {str(body)[:12]}" for body, kind, _ in BODIES]
)
def test_a_body_that_is_none_gets_a_sentence(body, kind, status):
    here = school()
    Caller(here.student).post(f"assignments/{here.assignment.pk}/attempts", body, status, kind)
    assert not Attempt.objects.exists()


def test_a_length_that_is_none_is_refused():
    here = school()
    caller = Caller(here.student)
    for length in ("-1", "ten", "9" * 30):
        response = caller.client.post(
            f"/api/assignments/{here.assignment.pk}/attempts",
            {"answers": RIGHT},
            content_type="application/json",
            CONTENT_LENGTH=length,
        )
        assert told(response, 413)["code"] == "too long"


@pytest.mark.parametrize(
    "address",
    [
        *("", "nothing", "assignments/x", "assignments/0", f"assignments/{2**80}", "attempts/x"),
        *("attempts/0000", "receipts/%F0%9F", f"threads/{2**80}", "threads/-1", "docs"),
    ],
)
def test_an_address_that_is_none_gets_a_sentence_too(address):
    assert Caller(school().student).get(address, 404)["code"] == "not found"


def test_without_a_token_that_stands_there_is_nothing_and_a_session_is_no_token():
    here = school()
    token, secret = tokens.make(here.student, "old", now=real_now())
    tokens.revoke(token, by=here.student, now=real_now())
    live = Caller(here.student).secret
    session = Client()
    session.force_login(here.student)
    shown = ["", "Bearer", "Bearer x", f"Bearer {secret}", f"Basic {live}", live, f"Bearer {live} x", "Bearer \xff"]
    for header in shown:
        response = session.get("/api/assignments", headers={"authorization": header} if header else {})
        assert told(response, 401)["code"] == "no token"
        assert response["WWW-Authenticate"] == "Bearer"
    response = session.post(
        f"/api/assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, content_type="application/json"
    )
    assert told(response, 401)
    assert not Attempt.objects.exists()


def test_a_token_of_somebody_who_was_put_out_does_nothing():
    here = school()
    caller = Caller(here.student)
    caller.get("assignments")
    User.objects.filter(pk=here.student.pk).update(is_active=False)
    caller.get("assignments", 401)
    caller.post(f"assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, 401)
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("debug", [False, True])
def test_what_breaks_here_is_logged_and_no_caller_reads_a_traceback(monkeypatch, caplog, debug):
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("the secret of the house")

    here = school()
    caller = Caller(here.student)
    monkeypatch.setattr(handin, "hand_in", breaks)
    with override_settings(DEBUG=debug):
        found = caller.post(f"assignments/{here.assignment.pk}/attempts", {"answers": RIGHT}, 500)
    assert found["code"] == "broken"
    assert "secret" not in found["detail"]
    assert "the secret of the house" in caplog.text


def test_its_description_is_served_and_every_address_asks_for_a_token():
    found = told(Client().get("/api/openapi.json"), 200)
    operations = [(path, verb) for path, verbs in found["paths"].items() for verb in verbs]
    assert len(operations) >= 11
    for path, verb in operations:
        concrete = path.replace("{number}", "1").replace("{receipt}", "00000000-0000-4000-8000-000000000000")
        told(Client().generic(verb.upper(), concrete, "{}", content_type="application/json"), 401)


# --- What docs/api.md says ------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
DOCS, ROOM = (ROOT / "docs" / "api.md").read_text(), ROOT / "grading"


def test_the_document_lists_every_address_with_its_own_words():
    paths = api.get_openapi_schema()["paths"]
    there = {(verb.upper(), path, of["description"]) for path, verbs in paths.items() for verb, of in verbs.items()}
    assert set(re.findall(r"^\| `(GET|POST) (\S+)` \| (.+) \|$", DOCS, re.MULTILINE)) == there


def test_the_document_lists_every_code_of_a_refusal_with_its_status():
    told_there = {
        code: int(status)
        for status, codes in re.findall(r"^\| (\d{3}) \| (.+?) \|", DOCS, re.MULTILINE)
        for code in re.findall(r"`([^`]+)`", codes)
        if code != "not json"
    }
    assert STATUS.items() <= told_there.items()
    source = "".join(file.read_text() for file in (ROOM / "api").glob("*.py"))
    said = {(code, int(status)) for status, code in re.findall(r"(?:said|NotABody)\((\d{3}), \"([a-z ]+)\"", source)}
    ours = {(code, status) for code, status in said if code != "not json"} - STATUS.items()
    assert ours == told_there.items() - STATUS.items()
    assert f"{LONGEST:,} bytes" in DOCS
