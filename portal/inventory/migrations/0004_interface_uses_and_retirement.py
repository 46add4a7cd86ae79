"""An interface has one use: triggers keep a row per side of a link and per port, under one unique key."""

from django.db import migrations, models
from django.db.models import Q

FORWARD = """
CREATE FUNCTION link_uses_its_interfaces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM inventory_interfaceuse WHERE link_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO inventory_interfaceuse (router_id, interface, link_id)
        VALUES (NEW.a_router_id, NEW.a_interface, NEW.id), (NEW.z_router_id, NEW.z_interface, NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION port_uses_its_interface() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM inventory_interfaceuse WHERE port_id = OLD.id;
    END IF;
    -- A retired port leaves its interface to others.
    IF TG_OP <> 'DELETE' AND NEW.retired_at IS NULL THEN
        INSERT INTO inventory_interfaceuse (router_id, interface, port_id)
        VALUES (NEW.router_id, NEW.interface, NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER link_uses_its_interfaces
    AFTER INSERT OR DELETE OR UPDATE OF a_router_id, a_interface, z_router_id, z_interface
    ON inventory_backbonelink FOR EACH ROW EXECUTE FUNCTION link_uses_its_interfaces();
CREATE TRIGGER port_uses_its_interface
    AFTER INSERT OR DELETE OR UPDATE OF router_id, interface, retired_at
    ON inventory_port FOR EACH ROW EXECUTE FUNCTION port_uses_its_interface();

INSERT INTO inventory_interfaceuse (router_id, interface, link_id)
    SELECT a_router_id, a_interface, id FROM inventory_backbonelink
    UNION ALL SELECT z_router_id, z_interface, id FROM inventory_backbonelink;
INSERT INTO inventory_interfaceuse (router_id, interface, port_id)
    SELECT router_id, interface, id FROM inventory_port;
"""

BACKWARD = """
DROP TRIGGER link_uses_its_interfaces ON inventory_backbonelink;
DROP TRIGGER port_uses_its_interface ON inventory_port;
DROP FUNCTION link_uses_its_interfaces();
DROP FUNCTION port_uses_its_interface();
"""


class Migration(migrations.Migration):
    dependencies = [("inventory", "0003_vpp_away_since")]

    operations = [
        migrations.CreateModel(
            name="InterfaceUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("router_id", models.BigIntegerField()),
                ("interface", models.CharField(max_length=63)),
                ("link_id", models.BigIntegerField(db_index=True, null=True)),
                ("port_id", models.BigIntegerField(db_index=True, null=True)),
            ],
        ),
        migrations.AddConstraint(
            model_name="interfaceuse",
            constraint=models.UniqueConstraint(
                fields=("router_id", "interface"), name="an_interface_has_one_use"
            ),
        ),
        migrations.RemoveConstraint(model_name="backbonelink", name="a_side_interface_is_one_link"),
        migrations.RemoveConstraint(model_name="backbonelink", name="z_side_interface_is_one_link"),
        migrations.RemoveConstraint(model_name="port", name="an_interface_is_one_port"),
        migrations.AddField("router", "retired_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddConstraint(
            model_name="router",
            constraint=models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | Q(agent_url=""), name="a_retired_router_has_no_agent"
            ),
        ),
        migrations.AddField("port", "retired_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddConstraint(
            model_name="port",
            constraint=models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | (Q(customer__isnull=True) & Q(booked_bps=0)),
                name="a_retired_port_is_nobodys",
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
