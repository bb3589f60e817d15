"""The deployment files as data: the Compose file filled in as Compose does it, the image's instructions."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
FILLED_IN = {
    "SECRET_KEY": "0123456789abcdef" * 4,
    "POSTGRES_PASSWORD": "3f" * 16,
    "BROKER_PASSWORD": "4e" * 16,
    "LOCKS_PASSWORD": "5d" * 16,
    "LAB_PASSWORD": "6c" * 16,
    "ALLOWED_HOSTS": "books.example",
}
REFERENCE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")

COMPOSE = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
BOXES = ("box-a", "box-b")
JUDGES = ("judge-a", "judge-b")


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


def option(arguments: list[str], name: str) -> str:
    """The value of `--name value` or `--name=value`."""
    for place, argument in enumerate(arguments):
        if argument == name:
            return arguments[place + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    raise AssertionError(f"{name} is not among {arguments}")


def dockerfile() -> list[tuple[str, str]]:
    """(instruction, the rest) for every instruction, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]
