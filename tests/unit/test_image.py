"""The containers' commands and the image: each command starts what it says, and the image holds what it needs."""

import ast
import fnmatch
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import redis
from celery.app.utils import find_app
from redis.backoff import NoBackoff
from redis.retry import Retry

from marlow.celery import app
from marlow.clock import wait_until
from marlow.judging import app as judging
from marlow.servers.launcher import free_port
from marlow.servers.redis import binary
from tests.unit.deployment import OURS, ROOT, SERVICES, dockerfile, environment_of, filled, option, run


def options_of(arguments: list[str]) -> list[str]:
    return [argument.partition("=")[0] for argument in arguments if argument.startswith("-")]


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


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

    @pytest.mark.parametrize(
        "command", [SERVICES["judge-a"]["command"], SERVICES["judge-a"]["healthcheck"]["test"][1:]]
    )
    def test_of_a_judge_is_one_that_celery_accepts(self, command: list[str]) -> None:
        """As a box's, with the judges' app."""
        assert find_app(option(command, "--app")) is judging
        self.options_exist(command, 3)
        accepted = run([*command, "--help"], environment_of(SERVICES["judge-a"]))
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
