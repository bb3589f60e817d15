from django.db import migrations, models

# What no order may do, whoever asks and however it asks: leave `dispatched` (the parcel is gone), become pending
# again, or be dispatched without having been paid. Each is refused as a check violation, so that Django raises
# IntegrityError with this sentence.
#
# Let through on purpose, although Order.FOLLOWS forbids it: abandoned to abandoned and to paid, paid to paid and to
# abandoned. These are what the unguarded writes do. A trigger that refused them would settle the evening's bug in
# the database, and the bug has to be seen; the guarded writes are what refuses them.
TRIGGER = """
create function shop_order_move() returns trigger language plpgsql as $$
begin
    if old.status = 'dispatched'
       or new.status = 'pending'
       or (new.status = 'dispatched' and old.status <> 'paid') then
        raise exception using
            errcode = 'check_violation',
            constraint = 'order_move_allowed',
            message = format('order %s can''t go from %s to %s', old.reference, old.status, new.status);
    end if;
    return new;
end
$$;

create trigger order_move_allowed before update of status on shop_order
    for each row when (old.status is distinct from new.status)
    execute function shop_order_move();
"""

NO_TRIGGER = """
drop trigger order_move_allowed on shop_order;
drop function shop_order_move();
"""


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]

    operations = [
        migrations.AddField("order", "dispatched_by", models.CharField(blank=True, max_length=120)),
        migrations.AlterField(
            "refund",
            "key",
            models.CharField(max_length=100, unique=True, verbose_name="refund's own idempotency key"),
        ),
        migrations.RunSQL(TRIGGER, NO_TRIGGER),
    ]
