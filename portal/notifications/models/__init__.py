from portal.notifications.models.mail import Group, Mail, MailOptOut, ReportedMonth
from portal.notifications.models.webhook import Delivery, Webhook

__all__ = ["Delivery", "Group", "Mail", "MailOptOut", "ReportedMonth", "Webhook"]
