from portal.notifications.models.mail import Group, Mail, MailLine, MailOptOut, ReportedMonth
from portal.notifications.models.webhook import Delivery, Webhook

__all__ = ["Delivery", "Group", "Mail", "MailLine", "MailOptOut", "ReportedMonth", "Webhook"]
