from django.db import migrations, models


class Migration(migrations.Migration):
    """Change the label of a kind of alarms in Django's state. The stored values do not change."""

    dependencies = [
        ("alarms", "0013_labels_of_two_kinds"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                            ("vlan_loss", "Lines whose VLAN a router does not recognize"),
                            ("losses", "Backbone interfaces losing frames"),
                            ("order_overdue", "Overdue orders"),
                            ("order_failed", "Orders that failed in the last day and were not retried"),
                            ("agent_ahead", "Agents ahead of the database"),
                            ("relay", "Messages that the relay has not sent"),
                            ("queue_unserved", "Queues without a worker"),
                            ("few_buffers", "Routers short of buffers"),
                            ("test_failed", "Failed activation tests"),
                            ("unconfirmed", "Removed lines that routers have not confirmed"),
                            ("link_mtu", "Links with conflicting MTUs"),
                            ("link_interface", "Links with a missing interface"),
                            ("files_aside", "Agents with unusable files"),
                            ("certificate_ends", "Router certificates that expire soon and were not renewed"),
                            ("quarantine", "Routers with a wrong clock"),
                            ("mails", "Mail that the mail server does not accept"),
                            ("webhook", "Disabled webhooks"),
                            ("netbox", "NetBox does not answer, or was last read too long ago"),
                            ("netbox_lines", "Lines that NetBox refuses"),
                            ("path_unheard", "Paths that cannot be watched: UDP port 4784 may be filtered"),
                            ("order_held", "Orders pending approval"),
                            ("withheld", "Routers locked, frozen or under maintenance"),
                            ("port_full", "Ports almost fully booked"),
                            ("router_full", "Routers with almost fully booked cores"),
                        ],
                        max_length=20,
                    ),
                ),
            ],
        ),
    ]
