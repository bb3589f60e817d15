"""What the settings refuse in production, and the sentence a person then reads."""

import ast
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = ["check", "--deploy", "--fail-level", "WARNING"]


def production(**changes: str) -> dict[str, str]:
    """The least that a deployment sets, with changes."""
    least = {"MARLOW_DEMO": "0", "SECRET_KEY": secrets.token_urlsafe(50), "ALLOWED_HOSTS": "books.example"}
    return {"PATH": os.defpath, **least, **changes}


def manage(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def last_line(seen: subprocess.CompletedProcess[str]) -> str:
    return seen.stderr.strip().splitlines()[-1]


def demo_secret_key() -> str:
    """As it stands in settings.py: in the demo settings hold it, and everywhere else they refuse it."""
    for node in ast.parse((ROOT / "marlow/settings.py").read_text()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="DEMO_SECRET_KEY")], value=value):
                return str(eval(compile(ast.Expression(value), "settings.py", "eval")))
    raise AssertionError("settings.py has no DEMO_SECRET_KEY")


class TestProduction:
    def test_passes_djangos_deployment_checks_without_a_warning(self) -> None:
        """A secret key and host names are all it takes: every other default is production's."""
        seen = manage(CHECK, production())
        assert seen.returncode == 0, seen.stderr
        assert "no issues (0 silenced)" in seen.stdout

    @pytest.mark.parametrize(
        ("changes", "complaint"),
        [
            ({"SECRET_KEY": "short"}, "security.W009"),
            ({"MARLOW_HTTPS": "0"}, "security.W008"),
            ({"SWEEPER_LOCK": "padlock"}, "sweeper.E001"),
        ],
    )
    def test_is_told_of_a_setting_that_weakens_it(self, changes: dict[str, str], complaint: str) -> None:
        """The clean bill above is one that can be refused."""
        seen = manage(CHECK, production(**changes))
        assert seen.returncode != 0
        assert complaint in seen.stderr

    @pytest.mark.parametrize("command", ["check", "migrate"])
    def test_does_not_start_without_a_secret_key(self, command: str) -> None:
        """Whatever is started, the last line says what to set. (Empty is none, and no .env can fill it.)"""
        seen = manage([command], production(SECRET_KEY=""))
        assert seen.returncode != 0
        assert last_line(seen).endswith("Set SECRET_KEY to fifty random characters (or MARLOW_DEMO=1 on a laptop).")

    def test_does_not_start_with_the_demos_secret_key(self) -> None:
        """Everybody who has the source has that key."""
        seen = manage(["check"], production(SECRET_KEY=demo_secret_key()))
        assert seen.returncode != 0
        assert last_line(seen).endswith("SECRET_KEY is the demo's, which everybody knows: set one of your own.")

    def test_does_not_start_with_debug_on(self) -> None:
        """A traceback in a visitor's browser shows settings and rows."""
        seen = manage(["check"], production(DEBUG="on"))
        assert seen.returncode != 0
        assert last_line(seen).endswith("DEBUG is on and MARLOW_DEMO is not: set DEBUG=0.")

    def test_keeps_its_secret_key_to_itself_when_it_refuses(self) -> None:
        """The refusal goes to a log: it names the variable, not the value."""
        key = secrets.token_urlsafe(50)
        assert key not in manage(["check"], production(SECRET_KEY=key, DEBUG="1")).stderr
        assert demo_secret_key() not in manage(["check"], production(SECRET_KEY=demo_secret_key())).stderr

    def test_says_so_in_the_web_process_too(self) -> None:
        """gunicorn, which a deployment starts first, ends with the same sentence."""
        seen = subprocess.run(
            [sys.executable, "-m", "gunicorn", "--check-config", "marlow.wsgi:application"],
            env=production(DEBUG="1"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert seen.returncode != 0
        assert "DEBUG is on and MARLOW_DEMO is not: set DEBUG=0." in seen.stderr


class TestACheckout:
    def test_is_a_demo_by_its_env_file(self) -> None:
        """`make setup` copies the example, and then nothing else needs to be set; DEBUG may be on."""
        assert "MARLOW_DEMO=1" in (ROOT / ".env.example").read_text().splitlines()
        assert (ROOT / ".env").exists(), "no .env here: run `make setup`"
        seen = manage(["check"], {"PATH": os.defpath, "DEBUG": "1"})
        assert seen.returncode == 0, seen.stderr

    def test_yields_to_the_environment(self) -> None:
        """MARLOW_DEMO=0 in the environment is production, whatever the file says: no key, no start."""
        seen = manage(["check"], {"PATH": os.defpath, "MARLOW_DEMO": "0", "SECRET_KEY": ""})
        assert seen.returncode != 0
        assert "Set SECRET_KEY" in last_line(seen)


class TestTheCommandLine:
    def test_ends_at_ctrl_c_without_a_traceback(self) -> None:
        """Whichever command it was: nothing went wrong that a person should read about."""
        interrupted = (
            "from django.core import management; import manage, signal\n"
            "management.execute_from_command_line = lambda words: signal.raise_signal(signal.SIGINT)\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler); manage.main()"
        )
        seen = subprocess.run(
            [sys.executable, "-c", interrupted],
            env=production(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (seen.returncode, seen.stderr) == (130, "")
