"""What the documents list is what there is."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.core.management import get_commands

from exercises.handed.exercise import catalogue
from exercises.proof.cells import ABOUT, TABLE, Outcome
from shop.settle import FORMS
from sweeper.checks import QUESTIONS
from sweeper.locks import LOCKS
from tests.unit.deployment import SERVICES

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "marlow/settings.py"
ROW = re.compile(r"^\| `(?P<name>[A-Z_]+)` \| (?P<meaning>.+) \| (?P<default>.+) \|$", re.MULTILINE)
# What a default is worked out from, as it stands in production.
IN_PRODUCTION = {"DEMO": False, "DEMO_SECRET_KEY": "", "BASE_DIR": Path("checkout"), "_running": {}, "str": str}


def defaults(source: str) -> dict[str, str]:
    """The name of every setting that `source` reads through django-environ, and its default as docs write it."""
    found = {}
    for call in ast.walk(ast.parse(source)):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name))], keywords=options
            ):
                found[name] = written(next((o.value for o in options if o.arg == "default"), None))
    return found


def read_in_loops(source: str) -> list[set[str]]:
    """For every comprehension that reads the environment, the capital words it goes through."""
    found = []
    for loop in ast.walk(ast.parse(source)):
        if isinstance(loop, ast.DictComp | ast.ListComp | ast.SetComp | ast.GeneratorExp) and re.search(
            r"\benv\.\w+\(\w", ast.unparse(loop)
        ):
            words = [word for over in loop.generators for word in ast.walk(over.iter)]
            texts = {str(word.value) for word in words if isinstance(word, ast.Constant)}
            found.append({text for text in texts if re.fullmatch("[A-Z_]+", text)})
    return found


def written(default: ast.expr | None) -> str:
    if default is None:
        return "none"
    worth = eval(compile(ast.Expression(default), "default", "eval"), dict(IN_PRODUCTION))
    match worth:
        case bool():
            return f"`{worth:d}`"
        case int() | float():
            return f"`{worth:g}`"
        case list():
            return f"`{','.join(worth)}`" if worth else "empty"
        case "":
            return "empty"
    return f"`{worth}`".replace("`checkout/state`", "`state` in the checkout")


def rows() -> list[dict[str, str]]:
    return [row.groupdict() for row in ROW.finditer((ROOT / "docs/settings.md").read_text())]


class TestTheListOfSettings:
    def test_names_every_setting_with_the_default_it_has(self) -> None:
        """Neither a setting without a line, nor a line without a setting, nor another default."""
        real = defaults(SETTINGS.read_text())
        real["SECRET_KEY"] = "none"  # its default in production is refused, which is to have none
        assert {row["name"]: row["default"] for row in rows()} == real

    def test_is_compared_with_every_setting_that_is_read(self) -> None:
        """No reading of the environment escapes the comparison: by name, or in a loop over names."""
        source = SETTINGS.read_text()
        readings = re.findall(r"\benv(?:\.(?!db_url_config)\w+)?\(", source)
        loops = read_in_loops(source)
        assert len(readings) == len(defaults(source)) + len(loops)
        assert set().union(*loops) <= set(defaults(source))
        assert not re.search(r"environ\.get|environ\[|ENVIRON\[|getenv", source)

    @pytest.mark.parametrize(
        ("setting", "choices"),
        [("SWEEPER_LOCK", LOCKS), ("SWEEPER_SETTLE", FORMS), ("SWEEPER_QUESTION", QUESTIONS)],
    )
    def test_names_every_choice_of_a_setting_that_has_choices(self, setting: str, choices: Iterable[str]) -> None:
        """A lock or a form of settling that is added to the code is added to the list."""
        row = next(row for row in rows() if row["name"] == setting)
        assert set(re.findall(r"`([a-z+-]+)`", row["meaning"])) == set(choices)

    @pytest.mark.parametrize(
        ("line", "default"),
        [
            ('env.bool("X", default=not DEMO)', "`1`"),
            ('env.float("X", default=120.0)', "`120`"),
            ('env.str("X", default=_running.get("X", "redis://host"))', "`redis://host`"),
            ('env.str("X", default=DEMO_SECRET_KEY if DEMO else "")', "empty"),
            ('env.list("X", default=["a", "b"])', "`a,b`"),
            ('env.path("X", default=str(BASE_DIR / "state"))', "`state` in the checkout"),
            ('env.str("X")', "none"),
        ],
    )
    def test_writes_a_default_as_one_would_set_it(self, line: str, default: str) -> None:
        """As it stands in production, in the form an environment file has it."""
        assert defaults(line) == {"X": default}


class TestTheLocks:
    """docs/locks.md: every lock, every fault, and what the table expects of each pair."""

    TEXT = (ROOT / "docs/locks.md").read_text()
    COLUMNS = ("calm", "overrun", "pause", "kill", "power-loss")

    PROMISES = re.findall(
        r"^\| `([a-z-]+)` \|(?:[^|]*\|){2} ([^|]*) \|", TEXT.partition("## The proof")[0], re.MULTILINE
    )

    def test_has_a_line_for_every_lock_and_every_fault(self) -> None:
        """With the sentence that the admin has."""
        assert [lock for lock, _ in self.PROMISES] == list(LOCKS)
        for fault, sentence in ABOUT.items():
            assert f"| `{fault}` | {sentence} |" in self.TEXT

    def test_says_which_locks_hand_out_a_token(self) -> None:
        """As they declare it."""
        minting = [lock for lock, token in self.PROMISES if not re.match("no(:|$)", token)]
        assert minting == [lock for lock, strategy in LOCKS.items() if strategy.mints_token]

    @pytest.mark.parametrize("lock", LOCKS)
    def test_expects_what_the_table_expects(self, lock: str) -> None:
        """Cell by cell."""
        columns = [self.word(TABLE[fault][lock]) for fault in self.COLUMNS]
        others = [f"`{fault}`: {self.word(row[lock])}" for fault, row in TABLE.items() if lock in row]
        rest = "; ".join(each for each in others if each.split("`")[1] not in self.COLUMNS) or "–"
        assert " | ".join((f"| `{lock}`", *columns, f"{rest} |")) in self.TEXT

    @staticmethod
    def word(outcome: Outcome) -> str:
        if outcome.phantom:
            return "**both write**" + (", and its key is deleted" if outcome.foreign_deletes else "")
        return outcome.second


class TestTheExercises:
    """README.md: some of them with their titles, and where all of them are listed."""

    TEXT = (ROOT / "README.md").read_text()

    def test_that_are_shown_are_there_under_their_titles(self) -> None:
        """A folder that is added is in the list that is named beside them, and this text need not change."""
        shown = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \| [^|]+ \|$", self.TEXT, re.MULTILINE)
        there = {slug: found.title for slug, found in catalogue().items()}
        assert len(shown) == 3
        assert dict(shown).items() <= there.items()
        assert "`manage.py judge --list` names all that there are" in self.TEXT


class TestTheSecondNode:
    """docs/two-nodes.md: its names and its numbers."""

    TEXT = (ROOT / "docs/two-nodes.md").read_text()

    def test_names_only_settings_and_commands_that_exist(self) -> None:
        """An operator who types what stands there gets what it says."""
        named = set(re.findall(r"\b(?:MARLOW|SWEEPER|PROVIDER|LOCK|CELERY|DATABASE|SECRET)_[A-Z_]+\b", self.TEXT))
        assert named <= set(defaults(SETTINGS.read_text()))
        commands = set(re.findall(r"manage\.py (\w+)", self.TEXT))
        assert commands
        assert commands <= set(get_commands())

    def test_links_only_to_files_that_exist(self) -> None:
        """Neither the guide nor the list of settings has a dead end."""
        for document in ("docs/two-nodes.md", "docs/settings.md"):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / document).read_text()):
                assert (ROOT / "docs" / link).exists(), f"{document}: {link}"

    def test_promises_the_seconds_that_the_defaults_add_up_to(self) -> None:
        """idle + interval × count, and the user timeout beside it, are one number and the one in the text."""
        real = {name: default.strip("`") for name, default in defaults(SETTINGS.read_text()).items()}
        idle, interval, count, user_timeout = (
            int(real[f"MARLOW_TCP_{name}"])
            for name in ("KEEPALIVES_IDLE", "KEEPALIVES_INTERVAL", "KEEPALIVES_COUNT", "USER_TIMEOUT")
        )
        assert idle + interval * count == user_timeout
        assert f"{idle} + {interval} × {count} = {user_timeout} seconds" in self.TEXT

    @pytest.mark.parametrize("name", ["box-b", "judge-b"])
    def test_shows_units_that_start_what_compose_does(self, name: str) -> None:
        """One command line for a box and one for its judge, whoever starts it; a unit writes a percent sign twice."""
        unit = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", self.unit(name), re.MULTILINE)
        assert unit is not None
        words = unit[1].replace("\\\n", " ").replace("%%", "%").split()
        compose = (ROOT / "docker-compose.yml").read_text()
        service = compose[compose.index(f"  {name}:\n") :]
        expected = re.findall(r"^      - (.+)$", service[: service.index("environment:")], re.MULTILINE)
        assert [Path(words[0]).name, *words[1:]] == [word.replace("/state", "/var/lib/marlow") for word in expected]

    def test_bounds_the_judge_as_compose_does(self) -> None:
        """Memory, no swap, processes, and how long a stop waits."""
        said = dict(line.split("=", 1) for line in self.unit("judge-b").splitlines() if "=" in line)
        judge = SERVICES["judge-b"]
        assert (said["MemoryMax"], said["MemorySwapMax"]) == (judge["mem_limit"].upper(), "0")
        assert (said["TasksMax"], said["TimeoutStopSec"]) == (
            str(judge["pids_limit"]),
            f"{judge['stop_grace_period']}in",
        )

    def unit(self, name: str) -> str:
        begins = self.TEXT.index(f"# /etc/systemd/system/marlow-{name}.service")
        return self.TEXT[begins : self.TEXT.index("```", begins)]
