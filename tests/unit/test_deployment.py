"""The deployment files against the program: whatever they name exists, and no secret has a value in them."""

import ast
import fnmatch
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from celery.app.utils import find_app
from redis.backoff import NoBackoff
from redis.retry import Retry
from ruamel.yaml import YAML

from marlow.celery import app
from marlow.clock import wait_until
from marlow.servers.launcher import free_port
from marlow.servers.redis import binary

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {"SECRET_KEY", "POSTGRES_PASSWORD", "BROKER_PASSWORD", "LOCKS_PASSWORD"}
# Read by the programs inside the images of others, not by ours.
OF_OTHER_IMAGES = {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "REDISCLI_AUTH"}
OF_PYTHON = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
FILLED_IN = {
    "SECRET_KEY": "0123456789abcdef" * 4,
    "POSTGRES_PASSWORD": "3f" * 16,
    "BROKER_PASSWORD": "4e" * 16,
    "LOCKS_PASSWORD": "5d" * 16,
    "ALLOWED_HOSTS": "books.example",
}
REFERENCE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")
REQUIRED = re.compile(r"\$\{\w+:\?[^}]+\}")

COMPOSE = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
BOXES = ("box-a", "box-b")


def missing_name(name: str, message: str) -> str:
    raise KeyError(f"{name}: {message}")


def filled(text: str, values: dict[str, str] = FILLED_IN) -> str:
    """`text` with ${NAME}, ${NAME:-default} and ${NAME:?message} filled in as Compose does, or KeyError."""

    def value(found: re.Match[str]) -> str:
        name, sign, rest = found.groups()
        if values.get(name):
            return values[name]
        return missing_name(name, rest) if sign == "?" else rest or ""

    return REFERENCE.sub(value, text)


def environment_of(service: dict[str, Any]) -> dict[str, str]:
    return {name: filled(value) for name, value in service.get("environment", {}).items()}


def run(command: list[str], environment: dict[str, str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command of a container here: this Python, the checkout as its folder, only the given environment."""
    program, *arguments = command
    started = [sys.executable, *arguments] if program == "python" else [sys.executable, "-m", program, *arguments]
    bin_first = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    return subprocess.run(
        started, env={"PATH": bin_first, **environment}, cwd=folder, capture_output=True, text=True, timeout=60
    )


def options_of(arguments: list[str]) -> list[str]:
    return [argument.partition("=")[0] for argument in arguments if argument.startswith("-")]


def option(arguments: list[str], name: str) -> str:
    """The value of `--name value` or `--name=value`."""
    for place, argument in enumerate(arguments):
        if argument == name:
            return arguments[place + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    raise AssertionError(f"{name} is not among {arguments}")


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


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def dockerfile() -> list[tuple[str, str]]:
    """(instruction, the rest) for every instruction, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


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
        """The three servers, the provider, the migration, the web process and two boxes."""
        assert set(SERVICES) == {
            "postgres",
            "redis-broker",
            "redis-locks",
            "provider",
            "migrate",
            "web",
            "box-a",
            "box-b",
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
        for name in ("web", *BOXES):
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
            assert service["security_opt"] == ["no-new-privileges:true"], name


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


class TestCommands:
    """Each command of ours, up to the point where it would start to work."""

    def options_exist(self, command: list[str], upto: int) -> None:
        """The program's own --help names every option that the command uses."""
        helped = run([*command[:upto], "--help"], environment_of(SERVICES["box-a"]))
        assert helped.returncode == 0, helped.stderr
        for name in options_of(command[upto:]):
            assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", helped.stdout), f"{command} has no {name}"

    def test_of_the_web_process_is_one_that_gunicorn_accepts(self) -> None:
        """gunicorn reads its options, imports the application with production settings, and is content."""
        program, *arguments = SERVICES["web"]["command"]
        assert program == "gunicorn"
        checked = run(["gunicorn", "--check-config", *arguments], environment_of(SERVICES["web"]))
        assert checked.returncode == 0, checked.stderr

    def test_of_the_image_is_the_web_process(self) -> None:
        """Without Compose the image does the same as its web service."""
        assert [json.loads(rest) for kind, rest in dockerfile() if kind == "CMD"] == [SERVICES["web"]["command"]]

    def test_of_the_web_processs_health_asks_an_address_that_answers(self) -> None:
        """No redirect to TLS and no foreign host name: with no database behind it, an honest 503."""
        address = re.search(r"http://127\.0\.0\.1:8000(/\w+)", SERVICES["web"]["healthcheck"]["test"][-1])
        assert address is not None
        ask = (
            "import django; django.setup(); from django.test import Client; "
            f"print(Client().get('{address[1]}', headers={{'host': '127.0.0.1:8000'}}).status_code)"
        )
        given = environment_of(SERVICES["web"]) | {
            "DATABASE_URL": "postgres://nobody@127.0.0.1:9/none",
            "DJANGO_SETTINGS_MODULE": "marlow.settings",
        }
        assert run(["python", "-c", ask], given).stdout.strip() == "503"

    def test_of_the_provider_is_a_module_with_these_options(self) -> None:
        """`python -m` finds the module, and it knows host, port and store."""
        command = SERVICES["provider"]["command"]
        assert command[:2] == ["python", "-m"]
        assert importlib.util.find_spec(command[2]) is not None
        self.options_exist(command, 3)

    def test_of_the_providers_health_tells_a_provider_from_none(self, tmp_path: Path) -> None:
        """The provider started by its own command, on a port of ours: well while it runs, unwell afterwards."""
        service, port = SERVICES["provider"], str(free_port())
        ours = {"0.0.0.0": "127.0.0.1", "8001": port, "/state/provider.sqlite3": str(tmp_path / "provider.sqlite3")}
        command = [sys.executable, *(ours.get(word, word) for word in service["command"][1:])]
        health = [word.replace(":8001", f":{port}") for word in service["healthcheck"]["test"][1:]]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as provider:
            try:
                assert wait_until(lambda: run(health, {}).returncode == 0, seconds=20)
            finally:
                provider.terminate()
        assert run(health, {}).returncode != 0

    def test_of_the_migration_is_one_of_djangos(self) -> None:
        """The management command exists, with its options."""
        command = SERVICES["migrate"]["command"]
        assert command[:2] == ["python", "manage.py"]
        self.options_exist(command, 3)

    @pytest.mark.parametrize("command", [SERVICES["box-a"]["command"], SERVICES["box-a"]["healthcheck"]["test"][1:]])
    def test_of_a_box_is_one_that_celery_accepts(self, command: list[str]) -> None:
        """Celery finds the app by its name, and every option of worker and ping is one it has."""
        assert find_app(option(command, "--app")) is app
        self.options_exist(command, 3)
        accepted = run([*command, "--help"], environment_of(SERVICES["box-a"]))
        assert accepted.returncode == 0, accepted.stderr

    @pytest.mark.parametrize("name", ["redis-broker", "redis-locks"])
    def test_of_each_redis_starts_a_server_that_wants_its_password(self, name: str, tmp_path: Path) -> None:
        """The very options, on the real server: nothing without the password, and every write kept."""
        options = [filled(word) for word in SERVICES[name]["command"][1:]]
        port = free_port()
        here = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(tmp_path)]
        client = redis.Redis(port=port, password=option(options, "--requirepass"), retry=Retry(NoBackoff(), 0))
        with subprocess.Popen([str(binary()), *options, *here], stdout=subprocess.DEVNULL) as server, client:
            try:
                assert wait_until(lambda: answers(client), seconds=10)
                with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
                    stranger.ping()
                assert client.config_get("appendonly")["appendonly"] == "yes"
                assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
            finally:
                server.terminate()

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_of_health_in_python_parses(self, name: str) -> None:
        """A one-line program in a YAML list is easily broken by a quote."""
        test = SERVICES[name].get("healthcheck", {}).get("test", [])
        if test[1:3] == ["python", "-c"]:
            ast.parse(test[3])


class TestTheImage:
    def test_copies_what_exists_and_what_its_context_lets_through(self) -> None:
        """Every COPY source is in the repository and not held back by .dockerignore."""
        let_in = {line[1:] for line in ignored() if line.startswith("!")}
        for source in copied():
            assert (ROOT / source).exists(), source
            assert source in let_in, f"{source} is held back by .dockerignore"

    def test_copies_every_package_of_the_project(self) -> None:
        """A room that is added to the house is added to the image."""
        contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
        assert set(contract["root_packages"]) <= set(copied())

    def test_lets_no_environment_file_in(self) -> None:
        """The context starts from nothing; neither .env nor a copy of the deployment's file gets through."""
        lines = ignored()
        assert lines[0] == "*"
        for name in (".env", "marlow/.env", "marlow/deploy.env"):
            verdict = [not line.startswith("!") for line in lines if matches(name, line.removeprefix("!"))]
            assert verdict[-1], f"{name} would be in the build context"

    def test_installs_the_locked_requirements_and_nothing_else(self) -> None:
        """One pip line, with hashes, from the lock file, from no index of its own."""
        lines = [rest for kind, rest in dockerfile() if kind == "RUN" and "pip" in rest]
        assert len(lines) == 1
        assert {"--require-hashes", "-r", "requirements.txt"} <= set(lines[0].split())
        assert "index" not in lines[0]

    def test_runs_as_a_user_without_rights_over_the_code(self) -> None:
        """The last USER is not root, and it is set after everything was copied."""
        kinds = [kind for kind, _ in dockerfile()]
        users = [rest for kind, rest in dockerfile() if kind == "USER"]
        assert users == ["marlow"]
        assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "COPY")
        assert not any("--chown" in rest for kind, rest in dockerfile() if kind == "COPY")

    def test_keeps_no_secret_and_leaves_health_to_compose(self) -> None:
        """The build's throw-away key is in no ENV and no ARG, and is made anew by each build."""
        kinds = {kind for kind, _ in dockerfile()}
        assert not kinds & {"ARG", "HEALTHCHECK", "ADD"}
        assert not any("SECRET" in rest or "PASSWORD" in rest for kind, rest in dockerfile() if kind == "ENV")
        lines = [rest for kind, rest in dockerfile() if "SECRET_KEY" in rest]
        assert len(lines) == 1
        assert lines[0].startswith('SECRET_KEY="$(python -c ')

    def test_collects_static_files_with_the_line_it_has(self) -> None:
        """The RUN line itself, tried dry, with production settings and no other environment."""
        (line,) = [rest for kind, rest in dockerfile() if kind == "RUN" and "collectstatic" in rest]
        bin_first = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
        seen = subprocess.run(
            ["/bin/sh", "-c", f"{line} --dry-run"],
            env={"PATH": bin_first, "MARLOW_DEMO": "0"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert seen.returncode == 0, seen.stderr
        assert "static file" in seen.stdout


def copied() -> list[str]:
    return [source for kind, rest in dockerfile() if kind == "COPY" for source in rest.split()[:-1]]


def ignored() -> list[str]:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def matches(path: str, pattern: str) -> bool:
    """As .dockerignore does it, near enough: a folder's pattern holds for what is below it, `**/` for any depth."""
    if pattern.startswith("**/"):
        return fnmatch.fnmatch(Path(path).name, pattern[3:])
    return fnmatch.fnmatch(path, pattern) or path.startswith(f"{pattern}/")
