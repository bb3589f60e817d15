"""Claims are held against the Wednesday under `slot`, the sequence is played, the settle is tried in every order."""

from exercises.catalogue.slot import alone, evening
from exercises.catalogue.slot.answers import Answers, Happens
from exercises.catalogue.slot.orders import Failure, first_failure
from exercises.catalogue.slot.settle import Settle
from exercises.handed.checks import Check, Evidence, Result, Room, TheirsFailed
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.keep import of_replay, of_wednesday
from exercises.scenarios.replay import Outcome, play
from exercises.scenarios.wednesday import START
from shop.words import count
from sweeper.events import Kind

VERSION, PLACE = 2, 2
SETTING = Setting("slot", "unguarded", "lookup")


def solved(answers: Answers, room: Room) -> Result:
    """What the finer key solves and what it does not, on the evening itself."""
    with room.laboratory() as database:
        outcome = play(database, SETTING)
    seen = _seen(outcome)
    right = [name for name, fact in seen.items() if getattr(answers, name) == fact]
    sentence = (
        f"On that evening each slot had {_one(seen['elected_once'])}, two runs were {_not(seen['together'])}at work "
        f"at one time, nobody’s hold on a slot was {_not(seen['foreign_delete'])}deleted by another, and a held copy "
        f"went back {'twice' if seen['back_twice'] == 'yes' else 'once'}. A row for each slot says who begins; it "
        "does not say that whoever began before has ended."
    )
    kept = of_wednesday(SETTING, START, outcome)
    wrong = oracles.copies(outcome.verdict)
    evidence = Evidence(sentence, kept["again"], wrong=wrong, verdict=kept["verdict"], steps=kept["steps"])
    if len(right) == len(seen):
        return SOLVED.passed(sentence, evidence)
    return SOLVED.failed(f"{count(len(right), 'claim')} of {len(seen)} hold. {sentence}", evidence)


def oversells(answers: Answers, room: Room) -> Result:
    """The sequence, played."""
    with room.laboratory() as database:
        played = evening.play(database, answers.events)
    kept = of_replay("", played.played)
    told = "\n".join(f"{event.at} {event.who} {event.does}" for event in answers.events)
    sentence = played.impossible or _what_came_of_it(played, answers.events)
    wrong = played.played.wrong
    evidence = Evidence(f"{told}\n{sentence}", wrong=wrong, verdict=kept["verdict"], steps=kept["steps"])
    if played.impossible or played.twice or not played.oversold:
        return OVERSELLS.failed(sentence, evidence)
    return OVERSELLS.passed(sentence, evidence)


def puts_back(answers: Answers, room: Room) -> Result:
    """The settle with nobody beside it."""
    settle = Settle(answers.settle)
    with settle.ready(room) as database:
        wrong = alone.wrong(database, settle)
    if wrong:
        return PUTS_BACK.failed(wrong, Evidence(wrong))
    sentence = "It abandons a pending row and puts its one copy back, and leaves every other row as it was."
    return PUTS_BACK.passed(sentence, Evidence(sentence))


def bears(answers: Answers, room: Room) -> Result:
    """The settle in every order of two boxes, with one of them killed anywhere. One that is wrong with nobody beside
    it is not right in any.
    """
    settle = Settle(answers.settle)
    try:
        with settle.ready(room) as database:
            failure = first_failure(database, settle)
            wrong = "" if failure else alone.wrong(database, settle)
    except TheirsFailed as failed:
        return BEARS.failed(str(failed), Evidence(str(failed)))
    if failure is not None:
        return BEARS.failed(_what_fails(failure), _evidence(failure))
    if wrong:
        return BEARS.failed(f"It bears another box, and yet: {wrong}", Evidence(wrong))
    sentence = (
        "Two boxes in every order, with one row and box A killed before any of its steps, and with two rows: each "
        "ends with every copy either for sale or held, and with no row left lying."
    )
    return BEARS.passed(sentence, Evidence(sentence))


# --- In words -----------------------------------------------------------------------------------------------------


def _seen(outcome: Outcome) -> dict[str, str]:
    """Each claim, as the evening has it."""
    elected = [event.token for event in outcome.events if event.kind is Kind.ACQUIRED]
    told = outcome.verdict
    facts = {
        "elected_once": len(elected) == len(set(elected)),
        "together": told["overlaps"] > 0,
        "foreign_delete": told["foreign_deletes"] > 0,
        "back_twice": told["phantom"] > 0,
    }
    return {name: "yes" if fact else "no" for name, fact in facts.items()}


def _one(said: str) -> str:
    return "one run at most" if said == "yes" else "more runs than one"


def _not(said: str) -> str:
    return "" if said == "yes" else "not "


def _what_came_of_it(played: evening.Evening, events: list[Happens]) -> str:
    if played.twice:
        return f"{count(played.twice, 'slot')} had more than one elected run, which this lock is there to prevent."
    elected = sum(event.does == "is elected" for event in events)
    if played.oversold:
        return (
            f"{count(elected, 'run')} elected, each for a slot of its own, and the catalogue promises "
            f"{count(played.oversold, 'copy', 'copies')} more than there are: a run may outlive its slot."
        )
    return "All of it can happen, and every copy is accounted for: have two runs list the row before one writes it."


def _what_fails(failure: Failure) -> str:
    wrong = "; ".join(failure.played.wrong)
    killed = sorted({fault.box for fault in failure.played.met})
    how = f"With {killed[0].replace('box-a', 'box A')} killed" if killed else "With nobody killed"
    said = f" {failure.said}" if failure.said else ""
    boxes = "of two boxes" if len({step.option.who for step in failure.played.taken}) > 1 else "of one box"
    return f"{how}, in one order {boxes}: {wrong}.{said}"


def _evidence(failure: Failure) -> Evidence:
    kept = of_replay(failure.schedule, failure.played)
    lines = [f"{step['who']}  {step['step']}" for step in kept["steps"]]
    text = "\n".join([_what_fails(failure), *lines, failure.schedule])
    wrong = failure.played.wrong
    return Evidence(text, schedule=failure.schedule, wrong=wrong, verdict=kept["verdict"], steps=kept["steps"])


SOLVED = Check("solved", "What the finer key solves", 2, solved)
OVERSELLS = Check("oversells", "An evening that still oversells", 4, oversells)
PUTS_BACK = Check("puts-back", "The settle with nobody beside it", 2, puts_back)
BEARS = Check("bears", "The settle in every order of two boxes", 6, bears)
CHECKS = [SOLVED, OVERSELLS, PUTS_BACK, BEARS]
