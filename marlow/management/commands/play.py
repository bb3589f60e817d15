"""`manage.py play`: the evening itself, on boxes that `manage.py up` has started."""

import json
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError
from rich.console import Console

from exercises.evening import Evening, EveningFailed
from exercises.models import Performance
from exercises.scenarios import wednesday
from exercises.screen import Screen
from marlow.clock import Dial, live, wait_until
from marlow.logins import LOGINS, PASSWORD
from sweeper.box import provider

READY_WITHIN = 60.0  # real seconds


class Command(BaseCommand):
    help = "Wait for boxes and provider, start the clock, watch the evening, and say what became of the shelf."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="start", choices=sorted(wednesday.STARTS), default="21:50")
        parser.add_argument("--web", required=True, help="the shop's address")
        parser.add_argument("--once", action="store_true")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _leave)
        console = Console(stderr=options["json"])
        _wait_for_everybody(options["web"])
        start = wednesday.STARTS[options["start"]]
        console.print(f"The shop is open: [bold]{options['web']}/admin/[/]")
        console.print(f"Logins: {', '.join(LOGINS)}; password {PASSWORD}\n")
        try:
            with provider() as asked, Screen(console) as screen:
                dial = Dial(Path(settings.MARLOW_CLOCK_FILE))
                evening = Evening(Performance.objects.latest("real_at"), start, dial, live(), asked, screen, _control)
                verdict = evening.play()
            screen.verdict(verdict)
            if not options["once"]:
                console.print(
                    f"\nIt is Friday and the clock stands. Look around at {options['web']}/admin/ ; Ctrl-C ends."
                )
            if options["json"]:
                sys.stdout.write(json.dumps(verdict) + "\n")
                sys.stdout.flush()
            if not options["once"]:
                signal.pause()
        except KeyboardInterrupt:
            for each in (signal.SIGINT, signal.SIGTERM):  # told once is enough: what comes now is the way out
                signal.signal(each, signal.SIG_IGN)
            sys.exit(130)
        except (EveningFailed, httpx.HTTPError) as failed:
            raise CommandError(f"The evening did not come to its end: {failed}") from failed
        except (DatabaseError, InterfaceError) as gone:
            raise CommandError(f"The evening did not come to its end: Postgres is gone ({gone}).") from gone


def _control(body: dict[str, Any]) -> None:
    httpx.put(f"{settings.PROVIDER_URL}/control", json=body).raise_for_status()


def _leave(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _wait_for_everybody(web: str) -> None:
    """Both workers, both beats, the provider and the web answer before the clock starts."""
    ready = Path(settings.STATE_DIR) / "ready"
    marks = [ready / f"{box}.{part}" for box in wednesday.CLOCK_OFFSETS for part in ("worker", "beat")]
    missing: list[str] = []

    def everybody() -> bool:
        missing[:] = [mark.name for mark in marks if not mark.exists()]
        missing.extend(url for url in (settings.PROVIDER_URL, web) if not _answers(f"{url}/healthz"))
        return not missing

    if not wait_until(everybody, READY_WITHIN, every=0.1):
        raise CommandError(f"Not ready within {READY_WITHIN:.0f} s: {', '.join(missing)}. Their logs say why.")


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
