"""The table of roles: what the migration makes of it, and what the docs print."""

import importlib
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import connection

from marlow import roles

DOC = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"
migration = importlib.import_module("exercises.migrations.0002_roles")


def of(role: str) -> set[str]:
    permissions = Group.objects.get(name=role).permissions.select_related("content_type")
    return {f"{permission.content_type.app_label}.{permission.codename}" for permission in permissions}


def make() -> None:
    with connection.schema_editor() as editor:
        migration.Migration.operations[0].code(apps, editor)


@pytest.mark.django_db
def test_the_migration_gives_each_group_exactly_its_row_of_the_table():
    Group.objects.all().delete()
    make()
    assert {role: of(role) for role in roles.ROLES} == {role: set(names) for role, names in roles.ROLES.items()}


@pytest.mark.django_db
def test_it_may_run_again_and_takes_away_what_was_given_by_hand():
    make()
    Group.objects.get(name="Student").permissions.add(Permission.objects.get(codename="delete_book"))
    make()
    assert of("Student") == set(roles.ROLES["Student"])


@pytest.mark.django_db
def test_it_makes_the_permissions_it_needs_on_a_fresh_database():
    Permission.objects.filter(content_type__app_label__in=roles.ROOMS).delete()
    make()
    assert of("Operator") == set(roles.ROLES["Operator"])


@pytest.mark.django_db
def test_every_name_in_the_table_is_a_permission():
    known = {f"{p.content_type.app_label}.{p.codename}" for p in Permission.objects.select_related("content_type")}
    assert {name for names in roles.ROLES.values() for name in names} <= known


def test_a_student_and_an_instructor_only_look_at_the_shop_its_boxes_and_what_was_played():
    for role in ("Student", "Instructor"):
        there = [name.partition(".") for name in roles.ROLES[role]]
        assert all(codename.startswith("view_") for room, _, codename in there if room != "grading")


def test_no_role_sees_accounts():
    assert not [name for names in roles.ROLES.values() for name in names if name.split(".")[0] not in roles.ROOMS]


def test_the_docs_print_the_table_as_it_is():
    assert DOC.read_text() == roles.as_markdown(), "run: python manage.py permissions > docs/permissions.md"
