from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    linter_exceptions = {
        "ban-drop-constraint": "it comes again with one kind more, in the same transaction",
    }

    dependencies = [
        ("alarms", "0007_validate_ports_slower_than_agreed"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="alarm",
            name="an_alarm_is_of_a_known_kind",
        ),
        migrations.AlterField(
            model_name="alarm",
            name="kind",
            field=models.CharField(
                choices=[
                    ("reports_away", "No reports from any router"),
                    ("router_silent", "Routers silent"),
                    ("vpp_away", "Routers without a VPP"),
                    ("vpp_hangs", "Routers whose VPP hangs and must be restarted"),
                    ("path_down", "Paths down"),
                    ("port_down", "Ports without link"),
                    ("port_slow", "Ports slower than agreed"),
                    ("line_down", "Lines down"),
                    ("black_hole", "MTU black holes"),
                    ("trouble", "Trouble reported by customers"),
                    ("router_differs", "Routers with configuration drift"),
                    ("line_differs", "Lines with configuration drift"),
                    ("contested", "Configuration of lines changed by somebody else"),
                    ("vlan_loss", "Lines whose frames a router drops as of an unknown VLAN"),
                    ("losses", "Backbone interfaces losing frames"),
                    ("order_overdue", "Overdue orders"),
                    ("order_failed", "Orders that failed in the last day and were not retried"),
                    ("agent_ahead", "Agents ahead of the database"),
                    ("relay", "Messages that the relay has not sent"),
                    ("queue_unserved", "Queues without a worker"),
                    ("few_buffers", "Routers short of buffers"),
                    ("test_failed", "Failed line tests"),
                    ("unconfirmed", "Removed lines that routers have not confirmed"),
                    ("link_mtu", "Links with conflicting MTUs"),
                    ("link_interface", "Links with a missing interface"),
                    ("files_aside", "Agents with unusable files"),
                    ("certificate_ends", "Certificates of routers that end soon and were not renewed"),
                    ("quarantine", "Samples with a wrong time or count, waiting for a decision"),
                    ("mails", "Mail that the mail server does not accept"),
                    ("webhook", "Disabled webhooks"),
                    ("netbox", "NetBox does not answer, or was last read too long ago"),
                    ("netbox_lines", "Lines that NetBox refuses"),
                    ("path_unheard", "Paths that cannot be watched: UDP port 4784 may be filtered"),
                    ("order_held", "Orders waiting for approval"),
                    ("withheld", "Routers held, frozen or under maintenance"),
                    ("port_full", "Ports almost fully booked"),
                    ("router_full", "Routers with almost fully booked cores"),
                ],
                max_length=20,
            ),
        ),
        AddConstraintNotValid(
            model_name="alarm",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "reports_away",
                            "router_silent",
                            "vpp_away",
                            "vpp_hangs",
                            "path_down",
                            "port_down",
                            "port_slow",
                            "line_down",
                            "black_hole",
                            "trouble",
                            "router_differs",
                            "line_differs",
                            "contested",
                            "vlan_loss",
                            "losses",
                            "order_overdue",
                            "order_failed",
                            "agent_ahead",
                            "relay",
                            "queue_unserved",
                            "few_buffers",
                            "test_failed",
                            "unconfirmed",
                            "link_mtu",
                            "link_interface",
                            "files_aside",
                            "certificate_ends",
                            "quarantine",
                            "mails",
                            "webhook",
                            "netbox",
                            "netbox_lines",
                            "path_unheard",
                            "order_held",
                            "withheld",
                            "port_full",
                            "router_full",
                        ],
                    )
                ),
                name="an_alarm_is_of_a_known_kind",
            ),
        ),
    ]
