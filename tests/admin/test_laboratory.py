"""The laboratory's runs in the admin: the list, and a run's own page with its picture and its story."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from exercises.models import LabRun
from tests import labruns
from tests.admin.conftest import text, words
from tests.labruns import one, recorded

pytestmark = pytest.mark.django_db
LIST = reverse("admin:exercises_labrun_changelist")
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def page_of(run: LabRun) -> str:
    return reverse("admin:exercises_labrun_change", args=[run.pk])


def picture(page: str) -> ET.Element:
    found = re.search(r'<svg class="timeline.*?</svg>', page, re.S)
    assert found is not None
    return ET.fromstring(found[0])


def titles(drawn: ET.Element) -> list[str]:
    return [element.text or "" for element in drawn.iter("title")]


def groups(drawn: ET.Element, name: str) -> list[ET.Element]:
    """Those of this class."""
    return [element for element in drawn.iter("g") if name in element.attrib.get("class", "").split()]


def texts(drawn: ET.Element, group: str) -> list[str]:
    """The words within groups of this class."""
    return [element.text or "" for found in groups(drawn, group) for element in found.iter("text")]


# --- The list -----------------------------------------------------------------------------------------------------


def rows(page: str) -> list[list[str]]:
    found = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.S)
    return [[words(cell).strip() for cell in re.findall(r"<t[dh] [^>]*>(.*?)</t[dh]>", row, re.S)] for row in found]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (
            "explored",
            ["corner", "none", "unguarded", "went wrong", "the catalogue promises copies that no shelf holds", "42"],
        ),
        ("clean", ["corner", "none", "guarded", "nothing wrong", "–", "exhausted, 26 orders"]),
        ("bounded", ["corner", "redis-naive", "unguarded", "went wrong", "a row was settled", "bounded, "]),
        ("wednesday", ["wednesday", "redis-naive", "unguarded", "went wrong", "a row was settled", "–"]),
    ],
)
def test_the_list_says_what_was_wrong_and_how_far_was_looked(student, name, row):
    one(name)
    (seen,) = rows(text(student, LIST))
    assert seen[0] == "Wed 2 Dec 2026, 09:00:00"
    assert len(seen) == len(row) + 1
    assert all(part in cell for part, cell in zip(row, seen[1:], strict=True)), seen


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"ending": "wrong"}, {"wednesday", "explored", "bounded"}),
        ({"ending": "right"}, {"clean"}),
        ({"ending": "whatever"}, {"wednesday", "explored", "bounded", "clean"}),
        ({"search": "exhausted"}, {"explored", "clean"}),
        ({"search": "bounded"}, {"bounded"}),
        ({"search": "none"}, {"wednesday"}),
        ({"scenario": "wednesday"}, {"wednesday"}),
        ({"settle": "guarded"}, {"clean"}),
        ({"lock": "redis-naive"}, {"wednesday", "bounded"}),
    ],
)
def test_the_list_is_narrowed_down(student, asked, left):
    known = {str(one(name).pk): name for name in ("wednesday", "explored", "bounded", "clean")}
    page = text(student, LIST, **asked)
    assert {known[pk] for pk in re.findall(r"/labrun/(\d+)/change/", page)} == left


def test_the_list_reads_no_events_no_steps_and_no_whole_report(student):
    one()
    with CaptureQueriesContext(connection) as queries:
        text(student, LIST)
    (asked,) = [query["sql"] for query in queries if '"exercises_labrun"."wrong"' in query["sql"]]
    assert not re.search(r'"exercises_labrun"\."(verdict|steps|report)"(,| FROM)', asked)


def test_the_list_costs_the_same_whatever_it_holds(student):
    costs = []
    for name in ("wednesday", "explored", "clean"):
        one(name)
        with CaptureQueriesContext(connection) as queries:
            text(student, LIST)
        costs.append(len(queries))
    assert costs[1] == costs[2] <= 11


# --- A run's page -------------------------------------------------------------------------------------------------


def test_the_wednesday_is_drawn_by_the_clock_with_a_lane_for_every_server(student):
    page = text(student, page_of(one()))
    assert "It went wrong The catalogue promises copies that no shelf holds (2);" in words(page)
    assert "manage.py lab wednesday --lock redis-naive --settle unguarded --question lookup" in words(page)
    drawn = picture(page)
    assert texts(drawn, "lane") == ["box-a", "box-b"]
    assert texts(drawn, "server") == ["Redis", "Postgres", "Provider"]
    assert texts(drawn, "axis")[:2] == ["21:50:00", "21:50:15"]
    assert "step" not in texts(drawn, "axis")
    assert texts(drawn, "moments") == []


def test_at_21_52_the_key_runs_out_and_the_next_one_is_deleted_by_a_stranger(student):
    drawn = picture(text(student, page_of(one())))
    assert texts(drawn, "key") == ["box-b’s key, until 21:52:00", "runs out", "box-a’s key", "deleted by box-b"]
    assert "21:52:20, box-b/1 to Redis: delete the key" in titles(drawn)
    assert {"box-b’s lease is over", "W-13 settled twice", "box-b deletes another run’s key"} <= set(
        texts(drawn, "notes")
    )


def test_of_a_crowd_of_statements_only_the_commits_are_drawn(student):
    """Fourteen rows and two again, each with its COMMIT."""
    told = titles(picture(text(student, page_of(one()))))
    assert sum("to Postgres: COMMIT" in title for title in told) == 16
    assert not any("UPDATE" in title for title in told)


def test_a_run_in_one_moment_is_drawn_by_its_steps(student):
    page = text(student, page_of(one("pause")))
    drawn = picture(page)
    assert texts(drawn, "axis") == ["step", *(str(number) for number in range(1, 23))]
    assert texts(drawn, "moments") == ["21:50:00", "21:52:00.001"]
    assert "step 12 (21:52:00.0), box-a/2 to Postgres: UPDATE shop_order" in titles(drawn)
    assert "box-a/2 waits for another’s lock from step 12 (21:52:00.0) to step 15 (21:52:00.0)" in titles(drawn)
    assert "box-a stands still, past a deadline" in texts(drawn, "notes")
    assert len(texts(drawn, "words")) == 22
    assert "After step" in page
    assert re.search(r"Step 18 Order row 1 was settled twice", words(page))
    assert "manage.py replay 'corner;redis-token;unguarded;lookup;2;1;2;0;120;pause@box-a:1;" in page.replace(
        "&#x27;", "'"
    )


def test_the_steps_stand_in_their_order(student):
    """From left to right each mark on a server's lane is a later step than the one before."""
    drawn = picture(text(student, page_of(one("pause"))))
    trips = groups(drawn, "trip")
    places = [float(re.findall(r"[\d.]+", element.attrib["transform"])[0]) for element in trips]
    assert len(places) == 21  # the fault is nobody's question
    assert places == sorted(set(places))


def test_a_run_whose_answers_take_time_is_drawn_by_the_clock_although_its_steps_are_known(student):
    run = recorded("pause")
    for event in run["verdict"]["events"]:
        if event["kind"] in ("answered", "settling", "settled", "released", "finished"):
            event["at"] = event["at"].replace("21:52:00", "21:52:07")
    drawn = picture(text(student, page_of(labruns.keep(run))))
    assert "step" not in texts(drawn, "axis")


def test_events_without_their_steps_are_drawn_by_the_clock(student):
    run = recorded("pause")
    for event in run["verdict"]["events"]:
        del event["step"]
    page = text(student, page_of(labruns.keep(run)))
    assert "step" not in texts(picture(page), "axis")
    assert "After step" not in page


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("explored", "Exhausted There is no other order within these bounds. 42 orders tried"),
        ("clean", "Exhausted There is no other order within these bounds. 26 orders tried"),
        ("bounded", "Bounded Not exhausted: the ceiling of"),
    ],
)
def test_an_exploration_says_whether_it_is_exhausted_and_within_which_bounds(student, name, said):
    page = words(text(student, page_of(one(name))))
    assert said in page
    assert "boxes: 2" in page
    assert "a lease lasts 120 s" in page
    assert ("Faults on the menu, each at every place where it can matter: pause," in page) == (name == "bounded")


def test_an_exploration_that_failed_shows_the_shortest_failure(student):
    page = text(student, page_of(one("explored")))
    assert "8 orders: the catalogue promises copies that no shelf holds (1); a row was settled" in words(page)
    assert "The shortest of them is shown here." in words(page)
    assert len(texts(picture(page), "words")) == 13


def test_an_exploration_that_found_nothing_has_no_picture(student):
    page = text(student, page_of(one("clean")))
    assert "Nothing went wrong in any order" in words(page)
    assert '<svg class="timeline' not in page
    assert "no journal" not in page


def test_a_run_that_went_wrong_is_not_said_to_have_done_no_harm(student):
    """Money that landed and no order keeps is no finding of the journal."""
    run = recorded("pause")
    events = [event for event in run["verdict"]["events"] if event["run"] == "box-a/1"]
    run["verdict"]["events"] = events
    page = words(text(student, page_of(labruns.keep(run, wrong=["money landed and no order keeps it (1)"]))))
    assert "It went wrong Money landed and no order keeps it (1)." in page
    assert "did no harm" not in page


def test_a_long_evening_is_drawn_where_it_went_wrong(student):
    run = recorded("wednesday")
    early = [
        {"at": "2026-02-11T20:50:00+00:00", "box": "box-b", "run": "box-b/9", "kind": kind, "step": 0, **how}
        for kind, how in (
            ("started", {}),
            ("acquired", {}),
            ("released", {"released": "ours", "deleted": True}),
            ("finished", {}),
        )
    ]
    run["verdict"]["events"] = [*early, *run["verdict"]["events"]]
    page = text(student, page_of(labruns.keep(run)))
    assert "Drawn from 21:49:45 to 21:53:25, where it went wrong." in words(page)
    drawn = picture(page)
    assert [len(groups(drawn, name)) for name in ("key", "bar")] == [2, 2]
    assert texts(drawn, "key")[0] == "box-b’s key, until 21:52:00"


def test_nonsense_leaves_a_page_standing(student):
    for run in labruns.odd():
        assert "Its particulars" in text(student, page_of(run)), run.pk
    assert text(student, LIST)


def hostile() -> LabRun:
    run: dict[str, Any] = recorded("pause")
    for event in run["verdict"]["events"]:
        event.update(box=HOSTILE, order=HOSTILE)
    for step in run["steps"]:
        step.update(who=f"{HOSTILE}/1", step=f"redis {HOSTILE}")
    report = {"bounds": {"boxes": HOSTILE, "menu": [HOSTILE], "stopped": HOSTILE}, "failures": []}
    report["failures"] = [{"what": [HOSTILE], "schedules": 1}]
    return labruns.keep(run, lock=HOSTILE[:40], schedule=HOSTILE, again=HOSTILE, wrong=[HOSTILE], report=report)


def test_nothing_that_was_kept_can_speak_for_the_page(student):
    for address in (page_of(hostile()), LIST):
        page = text(student, address)
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_no_page_holds_a_style_or_a_script_of_its_own_or_a_link_to_a_run_of_the_shop(student):
    for address in [LIST, *(page_of(one(name)) for name in labruns.RECORDED), page_of(hostile())]:
        page = text(student, address)
        assert not re.search(r"<style|\sstyle=|\son\w+=(?!alert)|javascript:", page), address
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page)), address
        assert "/admin/sweeper/sweeprun/" not in page.partition('id="content"')[2]


@pytest.mark.parametrize("name", labruns.RECORDED)
def test_a_run_s_page_costs_few_queries(student, name):
    address = page_of(one(name))
    with CaptureQueriesContext(connection) as queries:
        text(student, address)
    assert len(queries) <= 9


def test_a_run_is_for_those_who_may_see_it(come):
    run = one()
    assert come("staff without a group").get(page_of(run)).status_code == 403
    assert come("anonymous").get(page_of(run)).status_code == 302
