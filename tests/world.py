"""The world the tests run in: a real Postgres and two real Redises, started before Django is set up.

Servers that the environment names (DATABASE_URL, CELERY_BROKER_URL, LOCK_REDIS_URL) are used instead. A pytest
plugin (`-p tests.world`) because settings are read once, early.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis

closing = contextlib.ExitStack()


def open_world() -> None:
    os.environ.update(MARLOW_DEMO="1", MARLOW_TIME_SCALE="1")
    for name in ("MARLOW_CLOCK_FILE", "MARLOW_CLOCK_OFFSET"):
        os.environ.pop(name, None)
    folder = Path(tempfile.mkdtemp(prefix="marlow-tests-"))
    closing.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ["MARLOW_STATE_DIR"] = str(folder)
    if "DATABASE_URL" not in os.environ:
        postgres = EmbeddedPostgres(folder / "postgres").start()
        closing.callback(postgres.stop)
        os.environ["DATABASE_URL"] = postgres.url()
    for name in ("CELERY_BROKER_URL", "LOCK_REDIS_URL"):
        if name not in os.environ:
            server = EmbeddedRedis(folder / name.lower()).start()
            closing.callback(server.stop)
            os.environ[name] = server.url
    # Workers side by side share the servers; each has a database and a Redis number of its own.
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker:
        os.environ["LOCK_REDIS_URL"] = os.environ["LOCK_REDIS_URL"].rpartition("/")[0] + f"/{worker}"


open_world()


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    closing.close()


atexit.register(closing.close)  # for a session that ends before pytest is configured


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """In CI, where every optional server is installed, a skipped test is a failure."""
    skipped = len(terminalreporter.stats.get("skipped", []))
    if os.environ.get("CI") and skipped:
        terminalreporter.write_line(f"{skipped} skipped in CI, where nothing may be: see the reasons above", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
