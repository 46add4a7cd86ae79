"""Celery tasks of accounts."""

from importlib import import_module

from celery import shared_task
from django.conf import settings

from portal import celery_tasks
from portal.accounts import invitations
from portal.core import clock


@shared_task(name=celery_tasks.CLEAR_SESSIONS, time_limit=60)
def clear_sessions() -> None:
    """Delete expired sessions, which Django does not delete automatically."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()


@shared_task(name=celery_tasks.SEND_INVITATION)
def send_invitation(invitation_id: int) -> None:
    invitations.invitation_send(invitation_id=invitation_id, now=clock.now())


@shared_task(name=celery_tasks.RESEND_INVITATIONS)
def resend_invitations() -> None:
    invitations.invitations_resend(now=clock.now())
