"""`manage.py up`: real servers, two boxes, the provider and the web, one process tree, and the Wednesday on it."""

import contextlib
import json
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from exercises.scenarios import wednesday
from marlow.servers.etcd import EmbeddedEtcd
from marlow.servers.launcher import ServerError, end_left_over, free_port, port_or_free
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.zookeeper import EmbeddedZooKeeper
from marlow.settings import environment_for
from marlow.tree import Tree, manage
from marlow.turns import alone
from sweeper.checks import NAMED_SERVERS
from sweeper.locks import LOCKS

Environment = dict[str, str]


class Command(BaseCommand):
    help = "Start the shop on real servers and two boxes, play the Wednesday, and keep the shop open until Ctrl-C."
    requires_system_checks = []  # the settings it passes on are checked by the processes it starts

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="end after the verdict, with everything stopped")
        parser.add_argument("--json", action="store_true", help="the verdict as JSON on the last line of stdout")
        parser.add_argument(
            "--from",
            dest="start",
            choices=sorted(wednesday.STARTS),
            default="21:50",
            help="21:50 with fourteen rows seeded, or the whole evening from 20:50 by real checkouts",
        )
        parser.add_argument("--port", type=int, default=8000, help="of the web process; taken: the next free one")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.STATE_DIR) / "demo"
        try:
            self._say("Starting the servers")
            with alone(folder, "manage.py up"), open_servers(folder) as servers:
                status = self._run(folder, servers, options)
        except ServerError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            status = 130
        sys.exit(status)

    def _run(self, folder: Path, servers: Environment, options: dict[str, Any]) -> int:
        web = port_or_free(options["port"])
        if web != options["port"]:
            self.stderr.write(f"Port {options['port']} is in use; the shop opens on {web} instead.")
        provider = free_port()
        environment = environment_for(
            **settings.UP,
            **servers,
            MARLOW_DEMO="1",
            MARLOW_STATE_DIR=str(folder),
            MARLOW_CLOCK_FILE=str(folder / "clock.json"),
            MARLOW_CLOCK_EPOCH=wednesday.STARTS[options["start"]].isoformat(),
            PROVIDER_URL=f"http://127.0.0.1:{provider}",
        )
        _leave_addresses(folder, environment)
        self._say("Setting the stage: tables, books, orders")
        staged = subprocess.run(
            manage("stage", "--from", options["start"]), env=environment, capture_output=True, text=True, check=False
        )
        if staged.returncode:
            raise CommandError(f"The stage could not be set.\n{staged.stderr.strip()[-2000:]}")
        play = manage("play", "--from", options["start"], "--web", f"http://127.0.0.1:{web}")
        play += [flag for flag, wanted in (("--once", options["once"]), ("--json", options["json"])) if wanted]
        tree = Tree(folder, play, environment)
        _plant(tree, folder, provider, web)
        self._say("Starting the provider, box-a, box-b, the judge and the web")
        status = tree.run()
        if why := tree.last_words():
            self.stderr.write(why)
        return status

    def _say(self, words: str) -> None:
        """Progress, for people: standard output is for the verdict."""
        self.stderr.write(f"{words} …", self.style.NOTICE)


def _plant(tree: Tree, folder: Path, provider: int, web: int) -> None:
    store = str(folder / "provider.sqlite3")
    python = (sys.executable, "-m")
    tree.add("provider", [*python, "shop.provider.server", "--port", str(provider), "--store", store], urgent=True)
    for box, offset in wednesday.CLOCK_OFFSETS.items():
        tree.add(
            box,
            [
                *(
                    *python,
                    "celery",
                    "--app",
                    "marlow",
                    "worker",
                    "--beat",
                    "--hostname",
                    f"{box}@%h",
                    "--queues",
                    box,
                ),
                *("--concurrency", "2", "--without-gossip", "--without-mingle", "--loglevel", "WARNING"),
            ],
            urgent=True,
            MARLOW_BOX=box,
            MARLOW_CLOCK_OFFSET=str(offset),
        )
    judging = [
        "marlow.again",  # a judge that is killed loses nothing, and the shop stays open
        str(folder / "judge-itself.group"),
        *python,
        "celery",
        "--app",
        "marlow.judging",
        "worker",
        "--beat",
        "--hostname",
        "judge@%h",
        "--concurrency",
        "1",
    ]
    tree.add("judge", [*python, *judging, "--without-gossip", "--without-mingle", "--loglevel", "WARNING"])
    gunicorn = ["gunicorn", "marlow.wsgi:application", "--bind", f"127.0.0.1:{web}", "--threads", "4"]
    tree.add("web", [*python, *gunicorn, "--log-level", "warning"], MARLOW_BOX="web")


@contextlib.contextmanager
def open_servers(folder: Path) -> Iterator[Environment]:
    """The servers the environment names, and embedded ones for the rest; stopped in the end."""
    with contextlib.ExitStack() as running:
        urls = dict(settings.GIVEN_SERVERS)
        if "DATABASE_URL" not in urls:
            postgres = EmbeddedPostgres(folder / "postgres", urgent=True).start()
            running.callback(postgres.stop)
            urls["DATABASE_URL"] = postgres.url()
        for name, called in (("CELERY_BROKER_URL", "broker"), ("LOCK_REDIS_URL", "locks")):
            if name not in urls:
                server = EmbeddedRedis(folder / called, name=called, urgent=True).start()
                running.callback(server.stop)
                urls[name] = server.url
        if (setting := _lock_setting()) and setting not in urls:
            urls[setting] = _start_lock_servers(folder, running)
        running.callback((folder / "addresses.json").unlink, missing_ok=True)
        yield urls


def _lock_setting() -> str:
    """The setting that names what this evening's lock stands on beside a Redis or the database; empty if nothing."""
    strategy = LOCKS.get(settings.UP["SWEEPER_LOCK"])
    return NAMED_SERVERS[strategy.server][0] if strategy and strategy.server in NAMED_SERVERS else ""


def _start_lock_servers(folder: Path, running: contextlib.ExitStack) -> str:
    """Start them, to be stopped with the rest, and return their addresses as the setting takes them."""
    match _lock_setting():
        case "LOCK_REDLOCK_URLS":
            nodes = RedisNodes(folder / "redlock", urgent=True).start()
            running.callback(nodes.stop)
            return ",".join(nodes.urls)
        case "LOCK_ETCD_URLS":
            etcd = EmbeddedEtcd(_afresh(folder / "etcd"), urgent=True).start()
            running.callback(etcd.stop)
            return ",".join(etcd.urls)
    zookeeper = EmbeddedZooKeeper(_afresh(folder / "zookeeper"), urgent=True).start()
    running.callback(zookeeper.stop)
    return zookeeper.hosts


def _afresh(folder: Path) -> Path:
    """The folder without what an earlier evening left: a lock that outlived its box would be refused to this one."""
    for record in folder.glob("*.group"):
        end_left_over(record)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _leave_addresses(folder: Path, environment: Environment) -> None:
    """For `manage.py shell` and its like while the shop is open. Readable by its owner only: a password is in it.

    A server that this evening has not is left out.
    """
    file = folder / "addresses.json"
    file.touch(mode=0o600)
    names = (*settings.SERVERS, "PROVIDER_URL", "MARLOW_CLOCK_FILE", *settings.UP)
    file.write_text(json.dumps({name: environment[name] for name in names if name in environment}))
