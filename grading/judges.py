"""What the judges of each box say of themselves: a row a box, for whoever looks after them."""

from datetime import datetime

from grading.models import Judge


def opened(box: str, lacking: str, together: bool, now: datetime) -> None:
    """Its desk is open, and has found this. One statement: of two workers of a box the later one's word stands."""
    said = Judge(box=box[:60], seen_at=now, lacking=lacking[:2000], together=together)
    Judge.objects.bulk_create(
        [said],
        update_conflicts=True,
        unique_fields=["box"],
        update_fields=["seen_at", "lacking", "together"],
    )


def looked(box: str, now: datetime) -> None:
    """It has looked for work; a box whose desk was never opened has no row yet."""
    Judge.objects.filter(box=box[:60], seen_at__lt=now).update(seen_at=now)
