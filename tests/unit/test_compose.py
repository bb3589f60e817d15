"""The Compose file against the program: whatever it names exists, and no secret has a value in it."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from grading.clerk import TURN
from grading.sandbox.limits import Limits
from marlow.celery import app
from tests.unit.deployment import (
    BOXES,
    COMPOSE,
    FILLED_IN,
    JUDGES,
    OURS,
    REFERENCE,
    ROOT,
    SERVICES,
    dockerfile,
    environment_of,
    filled,
    option,
    run,
)

SECRETS = {"SECRET_KEY", "POSTGRES_PASSWORD", "BROKER_PASSWORD", "LOCKS_PASSWORD", "LAB_PASSWORD"}
# Read by the programs inside the images of others, not by ours.
OF_OTHER_IMAGES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "REDISCLI_AUTH"}
LIFTED = ("seccomp", "apparmor", "systempaths")  # what keeps namespaces, their mounts and a /proc of theirs away
OF_PYTHON = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
REQUIRED = re.compile(r"\$\{\w+:\?[^}]+\}")


def settings_that_are_read() -> set[str]:
    """Environment variables that marlow/settings.py or marlow/clock.py reads."""
    text = (ROOT / "marlow/settings.py").read_text() + (ROOT / "marlow/clock.py").read_text()
    return set(re.findall(r'(?:\benv\.\w+|os\.environ\.get|os\.getenv)\(\s*"(\w+)"', text))


def problems_of_schema(compose: Path) -> str:
    """What the Compose specification's schema says, from the copy that check-jsonschema carries: no network."""
    seen = run(
        ["check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(compose)],
        {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"},
    )
    return "" if seen.returncode == 0 else seen.stdout + seen.stderr


def literal_secrets(compose: dict[str, Any]) -> list[str]:
    """Places where a password or key stands in the file itself, or has a default, or may be empty."""
    found = []

    def look(place: str, value: str) -> None:
        if not REQUIRED.fullmatch(value):
            found.append(f"{place}: {value}")

    for name, service in compose["services"].items():
        environment = service.get("environment", {})
        command = [str(word) for word in service.get("command", [])]
        for key, value in environment.items():
            if re.search(r"SECRET|PASSW|_KEY|AUTH|TOKEN", key):
                look(f"{name} {key}", value)
        for value in (*environment.values(), *command):
            for password in re.findall(r"://[^:/@\s]*:(.*)@", value):
                look(f"{name} URL", password)
        if "--requirepass" in command:
            look(f"{name} --requirepass", command[command.index("--requirepass") + 1])
    return found


def example() -> dict[str, str]:
    lines = (ROOT / "deploy.env.example").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


class TestTheComposeFile:
    def test_fits_the_compose_specification(self) -> None:
        """The published schema accepts the file."""
        assert problems_of_schema(ROOT / "docker-compose.yml") == ""

    def test_would_be_refused_by_the_schema_with_a_misspelt_key(self, tmp_path: Path) -> None:
        """The check above can fail."""
        broken = tmp_path / "docker-compose.yml"
        broken.write_text((ROOT / "docker-compose.yml").read_text().replace("depends_on:", "depend_on:"))
        assert "depend_on" in problems_of_schema(broken)

    def test_has_every_part_of_the_shop(self) -> None:
        """The servers, the provider, the migration, the web process, two boxes and two judges."""
        assert set(SERVICES) == {
            "postgres",
            "redis-broker",
            "redis-locks",
            "provider",
            "migrate",
            "web",
            "postgres-lab",
            *BOXES,
            *JUDGES,
        }

    def test_names_services_conditions_and_volumes_that_exist(self) -> None:
        """The schema does not look at references: a typing error in one would show on the host only."""
        for name, service in SERVICES.items():
            for other, how in service.get("depends_on", {}).items():
                assert other in SERVICES, name
                if how["condition"] == "service_healthy":
                    assert "healthcheck" in SERVICES[other], f"{name} waits for the health of {other}"
            for volume in service.get("volumes", []):
                assert volume.partition(":")[0] in COMPOSE["volumes"], name
        used = [v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])]
        assert sorted(used) == sorted(COMPOSE["volumes"]), "each volume has exactly one user"

    @pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
    def test_restarts_and_watches_each_service(self, name: str) -> None:
        """Whatever runs for long comes back after a crash and says whether it is well."""
        assert SERVICES[name]["restart"] in {"always", "unless-stopped"}
        assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}

    def test_runs_the_migration_once_and_before_whoever_needs_the_tables(self) -> None:
        """One-shot, never restarted, and waited for."""
        assert SERVICES["migrate"]["restart"] == "no"
        for name in ("web", *BOXES, *JUDGES):
            assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}

    def test_publishes_the_web_port_on_the_loopback_and_nothing_else(self) -> None:
        """The databases are not the neighbourhood's, and the web process wants TLS in front."""
        published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert list(published) == ["web"]
        assert [filled(port) for port in published["web"]] == ["127.0.0.1:8000:8000"]

    def test_keeps_each_service_of_ours_without_privileges(self) -> None:
        """Read-only image, no capabilities, no way to gain any."""
        for name, service in OURS.items():
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"][0] == "no-new-privileges:true", name

    def test_lets_only_the_judges_make_namespaces(self) -> None:
        """Bubblewrap can't start under Docker's own profiles; nobody else needs to do without them."""
        without = {name for name, service in OURS.items() if len(service["security_opt"]) > 1}
        assert without == set(JUDGES)
        for name in JUDGES:
            assert SERVICES[name]["security_opt"][1:] == [f"{kept}=unconfined" for kept in LIFTED]


class TestSecrets:
    def test_have_no_value_in_the_compose_file(self) -> None:
        """Every password and key is asked of the environment."""
        assert literal_secrets(COMPOSE) == []

    @pytest.mark.parametrize(
        "service",
        [
            {"environment": {"SECRET_KEY": "hunter2"}},
            {"environment": {"POSTGRES_PASSWORD": "${POSTGRES_PASSWORD:-marlow}"}},
            {"environment": {"POSTGRES_PASSWORD": "${POSTGRES_PASSWORD}"}},
            {"environment": {"DATABASE_URL": "postgres://marlow:marlow@postgres/marlow"}},
            {"command": ["valkey-server", "--requirepass", "locks"]},
        ],
    )
    def test_would_be_found_where_they_had_one(self, service: dict[str, Any]) -> None:
        """The search above finds a literal, a default, an empty one, one in a URL and one in a command."""
        assert len(literal_secrets({"services": {"planted": service}})) == 1

    @pytest.mark.parametrize("name", sorted(SECRETS | {"ALLOWED_HOSTS"}))
    def test_missing_ones_stop_compose_with_a_sentence(self, name: str) -> None:
        """Whoever forgot a variable reads which one, and where to look."""
        text = (ROOT / "docker-compose.yml").read_text()
        assert filled(text), "with all of them it goes ahead"
        with pytest.raises(KeyError, match=f"{name}: Set {name}"):
            filled(text, FILLED_IN | {name: ""})

    def test_are_not_shared_between_servers(self) -> None:
        """Whoever learns the broker's password has not learnt the locks', and the provider has none at all."""
        hosts = {urlsplit(url).hostname: urlsplit(url).password for url in environment_of(SERVICES["box-a"]).values()}
        passwords = [hosts["postgres"], hosts["redis-broker"], hosts["redis-locks"]]
        assert len(set(passwords)) == 3
        assert SERVICES["provider"].get("environment", {}) == {}

    def test_servers_ask_for_the_passwords_that_the_urls_carry(self) -> None:
        """Each of the three servers is given the very password its clients come with."""
        given = environment_of(SERVICES["box-a"])
        for setting, key in (
            ("DATABASE_URL", "POSTGRES_PASSWORD"),
            ("CELERY_BROKER_URL", "REDISCLI_AUTH"),
            ("LOCK_REDIS_URL", "REDISCLI_AUTH"),
        ):
            url = urlsplit(given[setting])
            assert environment_of(SERVICES[str(url.hostname)])[key] == url.password
            command = SERVICES[str(url.hostname)].get("command")
            assert command is None or filled(option(command, "--requirepass")) == url.password


class TestTheEnvironment:
    @pytest.mark.parametrize("name", sorted(SERVICES))
    def test_names_only_variables_that_are_read(self, name: str) -> None:
        """A variable that nobody reads is a setting that somebody believes in."""
        known = settings_that_are_read() if name in OURS else OF_OTHER_IMAGES
        assert set(SERVICES[name].get("environment", {})) <= known

    def test_in_the_image_names_only_variables_that_are_read(self) -> None:
        """The same for the Dockerfile's ENV lines."""
        named = {pair.partition("=")[0] for kind, rest in dockerfile() if kind == "ENV" for pair in shlex.split(rest)}
        assert named <= settings_that_are_read() | OF_PYTHON

    def test_example_lists_exactly_what_compose_asks_for(self) -> None:
        """Nothing is asked for that the example leaves out, and nothing in it is without effect."""
        asked = {found.group(1) for found in REFERENCE.finditer((ROOT / "docker-compose.yml").read_text())}
        assert set(example()) == asked
        assert asked >= SECRETS

    def test_example_explains_each_variable_and_gives_no_secret(self) -> None:
        """Each variable stands under a comment; a secret's place is empty, so that nobody runs with ours."""
        lines = (ROOT / "deploy.env.example").read_text().splitlines()
        for before, line in pairwise(lines):
            if line and not line.startswith("#"):
                assert before.startswith("# "), line
        assert {name for name, value in example().items() if value} == {"WEB_PORT"}

    def test_keeps_the_broker_and_the_locks_on_two_servers(self) -> None:
        """Whoever breaks the locks' Redis must not break the queue."""
        given = environment_of(SERVICES["box-a"])
        broker, locks = urlsplit(given["CELERY_BROKER_URL"]).hostname, urlsplit(given["LOCK_REDIS_URL"]).hostname
        assert broker != locks
        assert {broker, locks} <= set(SERVICES)

    def test_points_at_services_by_their_names_and_ports(self) -> None:
        """The provider's address is the one its command listens on; all hosts are services of this file."""
        for name in ("web", *BOXES):
            urls = [urlsplit(value) for value in environment_of(SERVICES[name]).values() if "://" in value]
            assert {url.hostname for url in urls} == {"postgres", "redis-broker", "redis-locks", "provider"}
        assert str(urlsplit(environment_of(SERVICES["web"])["PROVIDER_URL"]).port) == option(
            SERVICES["provider"]["command"], "--port"
        )

    def test_passes_djangos_deployment_checks(self) -> None:
        """The settings load with what Compose gives them, as production, without a warning."""
        given = environment_of(SERVICES["web"])
        seen = run(["python", "manage.py", "check", "--deploy", "--fail-level", "WARNING"], given)
        assert seen.returncode == 0, seen.stderr


class TestTheJudges:
    def test_differ_in_their_name_and_in_nothing_else(self) -> None:
        a, b = (json.dumps(SERVICES[name], sort_keys=True) for name in JUDGES)
        assert a.replace("judge-a", "judge-b").replace("box-a", "box-b") == b

    @pytest.mark.parametrize("name", JUDGES)
    def test_try_answers_on_a_server_that_is_not_the_shops(self, name: str) -> None:
        """With a password of its own, which that server asks for."""
        given = environment_of(SERVICES[name])
        shop, laboratory = urlsplit(given["DATABASE_URL"]), urlsplit(given["LAB_DATABASE_URL"])
        assert laboratory.hostname == "postgres-lab" != shop.hostname
        assert environment_of(SERVICES["postgres-lab"])["POSTGRES_PASSWORD"] == laboratory.password != shop.password

    def test_are_the_only_ones_who_know_the_laboratorys_server(self) -> None:
        knowing = {name for name, service in OURS.items() if "LAB_DATABASE_URL" in service.get("environment", {})}
        assert knowing == set(JUDGES)

    @pytest.mark.parametrize("name", JUDGES)
    def test_run_no_box_and_no_box_runs_them(self, name: str) -> None:
        """Judging never delays a sweep: an app, a queue and a pool of its own."""
        command, health = SERVICES[name]["command"], SERVICES[name]["healthcheck"]["test"]
        assert option(command, "--app") == option(health, "--app") == "marlow.judging"
        assert option(health, "--destination") == f"{name}@{SERVICES[name]['hostname']}"
        assert "-B" in command
        assert all(option(SERVICES[box]["command"], "--app") == "marlow" for box in BOXES)

    @pytest.mark.parametrize("name", JUDGES)
    def test_have_an_end_to_their_memory_that_leaves_room_for_a_desk_and_a_program(self, name: str) -> None:
        """Without it the copies of one program could take the host's: nothing else bounds them together there."""
        service, program = SERVICES[name], Limits()
        most = int(service["mem_limit"].removesuffix("g")) * 1024**3
        assert service["memswap_limit"] == service["mem_limit"]
        assert most > settings.GRADING_MEMORY * 1024**2 + program.total
        assert service["pids_limit"] > program.lanes * (program.processes + 2)

    def test_are_given_the_time_to_end_a_turn_and_the_check_in_hand(self) -> None:
        """The rest is killed, and goes on elsewhere when its lease is over."""
        for name in JUDGES:
            minutes = int(SERVICES[name]["stop_grace_period"].removesuffix("m"))
            assert minutes * 60 >= TURN + settings.GRADING_CHECK_LIMIT


class TestTheBoxes:
    def test_differ_in_their_name_and_in_nothing_else(self) -> None:
        """Box B is box A with another name: the crontab was copied with the image."""
        a, b = (json.dumps(SERVICES[name], sort_keys=True) for name in BOXES)
        assert a != b
        assert a.replace("box-a", "box-b") == b

    @pytest.mark.parametrize("name", BOXES)
    def test_have_each_their_own_name_queue_and_beat(self, name: str) -> None:
        """On a shared queue either worker takes either message; a shared beat file is a corrupt one."""
        service = SERVICES[name]
        assert service["environment"]["MARLOW_BOX"] == name
        assert option(service["command"], "--queues") == name
        assert option(service["command"], "--hostname") == f"{name}@%h"
        assert "-B" in service["command"]
        folder = str(Path(option(service["command"], "--schedule")).parent)
        assert service["volumes"] == [f"{name}-state:{folder}"]

    @pytest.mark.parametrize("name", BOXES)
    def test_are_asked_for_their_health_by_their_own_name(self, name: str) -> None:
        """A ping to everybody would be answered by the other box."""
        service = SERVICES[name]
        assert option(service["healthcheck"]["test"], "--destination") == f"{name}@{service['hostname']}"

    def test_are_given_the_time_to_end_a_sweep(self) -> None:
        """Stopping a box waits longer than the longest run may take, so no run is killed half-way by a deploy."""
        for name in BOXES:
            minutes = re.fullmatch(r"(\d+)m", SERVICES[name]["stop_grace_period"])
            assert minutes is not None
            assert int(minutes[1]) * 60 > app.conf.task_time_limit
