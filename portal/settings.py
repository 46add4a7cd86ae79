"""One settings file for every deployment; what differs comes from the environment (12factor.net/config).

Each variable may also be given as a file: NAME_FILE is the path to what NAME would hold.
"""

import sys
from email.utils import formataddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pghistory
from csp.constants import NONE, SELF

from portal.beat_schedule import EVERY_S
from portal.core.database_url import read_database_url
from portal.core.environment import Environment
from portal.core.integer_overflow import require_integers_to_fit
from portal.core.line_test_mode import LineTestMode
from portal.core.path_bfd import PathWatch
from portal.core.provider import Provider
from portal.core.redis_url import KEEPALIVE, read_redis_url
from portal.netbox_sync import task_names as netbox
from portal.task_queues import TASK_QUEUES

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

SECRET_KEY = env.str("SECRET_KEY")
# Earlier ones, newest first: what they signed and sealed stays good.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
TOKEN_PEPPER = env.str("TOKEN_PEPPER")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1"])
BASE_URL = env.str("BASE_URL", default="http://localhost:8000")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Whose portal it is, as customers know the provider: on each page and in each mail.
LONGLINE_PROVIDER = Provider.read(
    name=env.str("LONGLINE_PROVIDER_NAME", default="Longline"),
    logo=env.str("LONGLINE_PROVIDER_LOGO", default=""),
    colour=env.str("LONGLINE_PROVIDER_COLOUR", default=""),
    terms_url=env.str("LONGLINE_PROVIDER_TERMS_URL", default=""),
    support_email=env.str("LONGLINE_PROVIDER_SUPPORT_EMAIL", default=""),
    support_phone=env.str("LONGLINE_PROVIDER_SUPPORT_PHONE", default=""),
    help_url=env.str("LONGLINE_PROVIDER_HELP_URL", default=""),
)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "pgtrigger",
    "pghistory",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "portal.core",
    "portal.events",
    "portal.accounts",
    "portal.inventory",
    "portal.allocation",
    "portal.vll",
    "portal.telemetry",
    "portal.diagnosis",
    "portal.notifications",
    "portal.alarms",
    "portal.audit",
    "portal.netbox_sync",
    "portal.uploads",
    "portal.imports",
    "portal.live",
    "portal.web",
    "portal.api",
    "provisioning",
]

MIDDLEWARE = [
    "portal.core.forwarded_proto.ForwardedProtoMiddleware",
    "portal.metrics.http_requests.RequestMetricsMiddleware",
    "portal.core.request_log.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.web.compression.PageGZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.core.request_id.RequestIdMiddleware",
    "portal.core.postgres_plans.PlanReadsWithValues",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.accounts.language_middleware.OwnLanguageMiddleware",
    "portal.api.language.ApiLanguageMiddleware",
    "portal.core.reader_zone.ReaderZoneMiddleware",
    "portal.accounts.second_factor.SecondFactorMiddleware",
    "portal.audit.actor.AuditMiddleware",
    "portal.core.replica.ReplicaMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.web.partial_requests.PartialRequestMiddleware",
    "portal.web.live_parts.LivePartMiddleware",
    # Before any view, and before the form's token is looked for in what was sent.
    "portal.web.upload_limit.UploadLimitMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# PostgreSQL is the only database: the invariants live in its constraints.
_DIRECT_URL = env.str("DATABASE_DIRECT_URL", default="")
# Planned once per connection what comes again and again: an order's statements took longer to plan than to
# run. Not in tasks (portal.celery). By default never through a pooler: it would have to carry prepared
# statements from client to client.
_PREPARE_AFTER = env.int("DATABASE_PREPARE_AFTER", default=3 if not _DIRECT_URL else 0) or None
_OPTIONS = {"server_side_binding": True, "prepare_threshold": _PREPARE_AFTER}
_DATABASE = read_database_url(env.str("DATABASE_URL"), variable="DATABASE_URL")
DATABASES: dict[str, Any] = {
    "default": {
        **_DATABASE,
        "CONN_MAX_AGE": env.int("DATABASE_CONN_MAX_AGE", default=60),
        "CONN_HEALTH_CHECKS": True,
        # A cursor that outlives its transaction needs the session to itself.
        "DISABLE_SERVER_SIDE_CURSORS": bool(_DIRECT_URL),
        "OPTIONS": {**_DATABASE["OPTIONS"], **_OPTIONS},
    },
}
# Where DATABASE_URL leads to a pooler: what goes past it (portal.core.direct_connection).
DATABASE_DIRECT = read_database_url(_DIRECT_URL, variable="DATABASE_DIRECT_URL") if _DIRECT_URL else {}
# A streaming replica, for graphs, lists and exports (portal.core.replica); "": all is asked of the above.
if _REPLICA_URL := env.str("DATABASE_REPLICA_URL", default=""):
    _REPLICA = read_database_url(_REPLICA_URL, variable="DATABASE_REPLICA_URL", takes_writes=False)
    DATABASES["replica"] = {
        **_REPLICA,
        "CONN_MAX_AGE": DATABASES["default"]["CONN_MAX_AGE"],
        "CONN_HEALTH_CHECKS": True,
        # What it does not answer in time is asked of the primary. Nothing is written there by mistake, not
        # even where the address leads to a server that takes writes.
        "OPTIONS": {
            **_REPLICA["OPTIONS"],
            "server_side_binding": True,
            "prepare_threshold": None,
            "connect_timeout": 2,
            "tcp_user_timeout": 5000,
            "options": "-c default_transaction_read_only=on",
        },
    }
# As old as its newest commit may be, in seconds; what is older is asked of the primary.
LONGLINE_REPLICA_MAX_AGE_S = env.int("LONGLINE_REPLICA_MAX_AGE_S", default=10)
# Here, because connections take over what is registered when the first of them is made.
require_integers_to_fit()
# The audit trail: who did it is kept with each event, and no event is ever changed. Its triggers belong to
# the audit app although they sit on other apps' tables: they follow the models after every migrate, by
# portal/audit/post_migrate.py.
PGHISTORY_APPEND_ONLY = True
PGHISTORY_CONTEXT_FIELD = pghistory.ContextJSONField()
PGHISTORY_FOREIGN_KEY_FIELD = pghistory.ForeignKey(db_index=False)
PGHISTORY_OBJ_FIELD = pghistory.ObjForeignKey(db_index=True, related_name="+", related_query_name="+")
PGTRIGGER_MIGRATIONS = False
PGTRIGGER_INSTALL_ON_MIGRATE = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "web:overview"
LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "portal.accounts.allauth_adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "portal.web.forms.sign_in.SignInForm",
    "change_password": "portal.web.forms.sign_in.OtherPasswordForm",
    "set_password": "portal.web.forms.sign_in.FirstPasswordForm",
    "reset_password_from_key": "portal.web.forms.sign_in.ForgottenPasswordForm",
    "reset_password": "portal.accounts.password_reset.ResetPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
# Addresses come from the NOC or from an invitation that was mailed to them.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
# Each is a mail to an address that may be somebody else's.
ACCOUNT_RATE_LIMITS = {"manage_email": "5/h/user"}
ACCOUNT_PRESERVE_USERNAME_CASING = True
MFA_ADAPTER = "portal.accounts.allauth_adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = LONGLINE_PROVIDER.name
# A code counts for one step after its own: typing takes time, and phones run late (RFC 6238, 5.2).
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
# Whether NOC staff must have TOTP before any page opens to them.
LONGLINE_NOC_NEEDS_TOTP = env.bool("LONGLINE_NOC_NEEDS_TOTP", default=not DEBUG)

# OpenID Connect: off until OIDC_SERVER_URL names an issuer. It signs in people who have an account already.
SOCIALACCOUNT_ADAPTER = "portal.accounts.allauth_adapters.SocialAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
OIDC_SERVER_URL = env.str("OIDC_SERVER_URL", default="")
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_SERVER_URL:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": env.str("OIDC_NAME", default="single sign-on"),
                "client_id": env.str("OIDC_CLIENT_ID"),
                "secret": env.str("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_SERVER_URL},
            }
        ],
    }

# All mails: smtp+tls://user:password@host:587. Without it they are only logged.
vars().update(env.email_url("EMAIL_URL", default="consolemail://"))
EMAIL_TIMEOUT = 10
EMAIL_SUBJECT_PREFIX = f"[{LONGLINE_PROVIDER.name}] "
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default=formataddr((LONGLINE_PROVIDER.name, "longline@localhost")))

# Whose X-Forwarded-For and X-Forwarded-Proto are believed: networks of reverse proxies, such as 10.0.0.0/29.
LONGLINE_TRUSTED_PROXIES = env.list("LONGLINE_TRUSTED_PROXIES", default=[])

# What is not written for one reader is in English: what is stored, and what programs read (ADR 40).
LANGUAGE_CODE = "en"
# Each by its own name, as somebody looks for it who reads no other.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
# The catalogues: `make messages` writes them from the sources, `make translations` compiles them.
LOCALE_PATHS = [BASE_DIR / "locale"]
# What a visitor chose before signing in. Afterwards the account knows.
LANGUAGE_COOKIE_NAME = "language"
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 86400
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / ".run" / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
# The documentation site, as `make docs` builds it.
LONGLINE_DOCS_DIR = Path(env.str("LONGLINE_DOCS_DIR", default=str(BASE_DIR / "build" / "docs")))
# Their folders are named by their versions: what was fetched once never changes.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/vendor/[^/]+-\d[^/]*/"

# Cookies are HTTPS-only wherever the portal itself is.
SECURE_COOKIES = BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
CSRF_FAILURE_VIEW = "portal.processes.error_handlers.stale_form"
LANGUAGE_COOKIE_SECURE = SECURE_COOKIES
# Where browsers reach the live process; "": nowhere, and pages poll. Where this address does not lead to it,
# the web processes answer, and pages poll too. Another origin than the portal's has to get its cookies all
# the same: the same host with another port.
LONGLINE_LIVE_URL = env.str("LONGLINE_LIVE_URL", default="/live/")
# How many pages one live process serves at a time, and how many of them of one person.
LONGLINE_LIVE_PAGES = env.int("LONGLINE_LIVE_PAGES", default=5000)
LONGLINE_LIVE_PAGES_EACH = env.int("LONGLINE_LIVE_PAGES_EACH", default=50)
_live = urlsplit(LONGLINE_LIVE_URL)
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "connect-src": [SELF, *([f"{_live.scheme}://{_live.netloc}"] if _live.netloc else [])],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.v1.authentication.BearerTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsers.BoundedJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["portal.api.v1.list_filters.StrictFilterBackend"],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.v1.throttling.PerTokenAndUser"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.openapi.operation.DocumentedOperation",
    "EXCEPTION_HANDLER": "portal.api.v1.exception_handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
    # What an address answers in is in its name.
    "URL_FORMAT_OVERRIDE": None,
    "STRICT_JSON": True,
}

# Limits of logins and of API calls: in a database of their own, beside the broker's.
_REDIS = read_redis_url(env.str("REDIS_URL"), variable="REDIS_URL")
_CACHE_URL = env.str("CACHE_URL", default="")
_CACHE = read_redis_url(_CACHE_URL, variable="CACHE_URL") if _CACHE_URL else _REDIS.with_database(1)
CACHES = {
    "default": {
        "BACKEND": "portal.core.fallback_cache.FallbackRedisCache",
        # In a list, since an address may have commas.
        "LOCATION": [_CACHE.url],
        "KEY_PREFIX": "longline",
        "OPTIONS": {"patience_s": 0.5},
    },
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Longline",
    "VERSION": "1",
    "DEFAULT_GENERATOR_CLASS": "portal.api.openapi.document.Generator",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "AUTHENTICATION_WHITELIST": ["portal.api.v1.authentication.BearerTokenAuthentication"],
    "POSTPROCESSING_HOOKS": [
        "portal.api.openapi.spectacular_hooks.readable_by_generators",
        "portal.api.openapi.examples.add_examples",
    ],
}

# Whether a POST that comes with an API token has to have an Idempotency-Key.
LONGLINE_REQUIRE_IDEMPOTENCY_KEY = env.bool("LONGLINE_REQUIRE_IDEMPOTENCY_KEY", default=False)
# How many tokens of one user may be live at a time: neither revoked nor expired; 0 = any number.
LONGLINE_API_TOKENS_EACH = env.int("LONGLINE_API_TOKENS_EACH", default=100)
# All tokens of one user together may send so many times what one token may; 0 = no limit.
LONGLINE_API_USER_LIMIT_FACTOR = env.int("LONGLINE_API_USER_LIMIT_FACTOR", default=3)
# The requests of one API token in a minute; 0 = no limit.
LONGLINE_API_READS_PER_MIN = env.int("LONGLINE_API_READS_PER_MIN", default=3000)
LONGLINE_API_WRITES_PER_MIN = env.int("LONGLINE_API_WRITES_PER_MIN", default=1200)
# How often one address may try to enrol a router in a minute; 0 = as often as it likes.
LONGLINE_ENROL_PER_MIN = env.int("LONGLINE_ENROL_PER_MIN", default=20)

REDIS_URL = _REDIS.url
CELERY_BROKER_URL = _REDIS.broker_url
CELERY_BROKER_TRANSPORT = "portal.processes.celery_transport:" + (
    "SentinelTransport" if _REDIS.sentinels else "Transport"
)
# Status lives in PostgreSQL; a message is only a hurry-up, so its result is never kept.
CELERY_TASK_IGNORE_RESULT = True
# In seconds, of tasks that name none of their own: past every timeout of the two exchanges with a router
# (provisioning.agent_client.TOTAL_S). One that hangs beyond it is killed, and a sweeper resumes.
CELERY_TASK_TIME_LIMIT = 90
# No task runs longer.
LONGEST_TASK_S = 3600
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Celery by itself opens a database connection for each task. See portal.celery.keep_sound_connections.
CELERY_DB_REUSE_MAX = sys.maxsize
CELERY_TASK_DEFAULT_QUEUE = "provisioning"
CELERY_TASK_ROUTES = {task: {"queue": queue} for task, queue in TASK_QUEUES.items()}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message is delivered once more when it was not acknowledged for so long: never while a task may still
    # run. What a killed worker had is not waited for: sweepers send it anew.
    "visibility_timeout": LONGEST_TASK_S + 600,
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
    # A worker that waits for messages has no timeout. One whose Redis is silent notices after 1 + 2 * 5 s, by
    # itself it were 51 (kombu.transport.redis); one whose Redis was cut off after 5 + 3 * 2 s.
    "health_check_interval": 5,
    "socket_keepalive": True,
    "socket_keepalive_options": KEEPALIVE,
    **_REDIS.broker_options(patience_s=2),
}
# NetBox (docs/integrate/netbox.md): off until NETBOX_URL names one.
NETBOX_URL = env.str("NETBOX_URL", default="")

# Beat only hurries sweepers that are safe to run twice. One works, of however many are started.
CELERY_BEAT_SCHEDULER = "portal.processes.single_beat:SingleBeat"
CELERY_BEAT_SCHEDULE = {
    task: {"task": task, "schedule": float(every_s), "options": {"expires": every_s}}
    for task, every_s in EVERY_S.items()
    if NETBOX_URL or task != netbox.SYNC
}

NETBOX_TOKEN = env.str("NETBOX_TOKEN", default="")
# A file of certificates to trust instead of the system's.
NETBOX_CA = env.str("NETBOX_CA", default="")
# How long to wait for a piece of an answer, and for all of it, in seconds; and how many objects make a page.
NETBOX_TIMEOUT_S = env.float("NETBOX_TIMEOUT_S", default=20)
NETBOX_TOTAL_S = env.float("NETBOX_TOTAL_S", default=120)
NETBOX_PAGE = env.int("NETBOX_PAGE", default=250)
NETBOX_SYNC_EVERY_S = env.int("NETBOX_SYNC_EVERY_S", default=900)
# Whether what the schedule finds is taken over, or only shown for a NOC admin to take over.
NETBOX_APPLY = env.bool("NETBOX_APPLY", default=True)
NETBOX_DEVICE_ROLES = env.list("NETBOX_DEVICE_ROLES", default=["router"])
NETBOX_DEVICE_TAGS = env.list("NETBOX_DEVICE_TAGS", default=[])
NETBOX_TENANT_TAGS = env.list("NETBOX_TENANT_TAGS", default=[])
NETBOX_UNI_TAG = env.str("NETBOX_UNI_TAG", default="longline-uni")
NETBOX_ENNI_TAG = env.str("NETBOX_ENNI_TAG", default="longline-enni")
NETBOX_CUSTOMER_FIELD = env.str("NETBOX_CUSTOMER_FIELD", default="longline_customer")
# The interface whose addresses end tunnels; "": the device's primary addresses do.
NETBOX_LOOPBACK_INTERFACE = env.str("NETBOX_LOOPBACK_INTERFACE", default="loop0")
# What becomes of a line's L2VPN when the line is over: "remove", or "decommission" to keep it as a record.
NETBOX_AT_END = env.str("NETBOX_AT_END", default="remove")
# The secret of NetBox's webhook; without one, its address does not exist.
NETBOX_WEBHOOK_SECRET = env.str("NETBOX_WEBHOOK_SECRET", default="")

# The CA and the portal's own certificate: ca.pem, portal.pem, portal.key.
LONGLINE_PKI_DIR = Path(env.str("LONGLINE_PKI_DIR", default=str(BASE_DIR / ".run" / "pki")))
# "planning" leaves room for options, keys and any single failure; "exact" does not (docs/reference/mtu.md).
LONGLINE_MTU_POLICY = env.str("LONGLINE_MTU_POLICY", default="planning")
# How long a released VNI, GRE key or GRE pair rests before it may serve another customer.
LONGLINE_HOLD_DOWN_S = env.int("LONGLINE_HOLD_DOWN_S", default=3600)
# How long a removal can be taken back, in seconds, where the customer has no such agreement; 0: not at all.
LONGLINE_COOLING_OFF_S = env.int("LONGLINE_COOLING_OFF_S", default=604_800)

# The least bandwidth that is sold, in bit/s or with a unit. Existing lines that have less keep it.
LONGLINE_MIN_CIR_BPS = env.rate("LONGLINE_MIN_CIR_BPS", default=1_000_000)
# How much of a new port's speed may be booked, in per cent, where the NOC names nothing else: 200 is 2 to 1.
LONGLINE_OVERSUBSCRIPTION_PERCENT = env.int("LONGLINE_OVERSUBSCRIPTION_PERCENT", default=100)
# Which part of a router's cores may be promised, and the frames (bytes) that a full line is thought to carry.
LONGLINE_CORE_HEADROOM = env.float("LONGLINE_CORE_HEADROOM", default=0.7)
LONGLINE_CAPACITY_FRAME = env.int("LONGLINE_CAPACITY_FRAME", default=512)

# How long counters are kept, in days: as they were measured, per 5 minutes, per hour and per day.
LONGLINE_SAMPLE_DAYS = env.int("LONGLINE_SAMPLE_DAYS", default=2)
LONGLINE_FIVE_MINUTE_DAYS = env.int("LONGLINE_FIVE_MINUTE_DAYS", default=40)
LONGLINE_HOUR_DAYS = env.int("LONGLINE_HOUR_DAYS", default=731)
LONGLINE_DAY_DAYS = env.int("LONGLINE_DAY_DAYS", default=1827)
# How long samples that were set aside wait for a decision, in days after the end of their month.
LONGLINE_QUARANTINE_DAYS = env.int("LONGLINE_QUARANTINE_DAYS", default=60)
# How long what agents say has happened is kept, and known when it is sent a second time, in days.
LONGLINE_ROUTER_EVENT_DAYS = env.int("LONGLINE_ROUTER_EVENT_DAYS", default=90)
# How long attempts to converge routers are kept that are nobody's last word and of no open order, in days.
LONGLINE_ATTEMPT_DAYS = env.int("LONGLINE_ATTEMPT_DAYS", default=90)
# How long alarms that have cleared are kept, in days.
LONGLINE_ALARM_DAYS = env.int("LONGLINE_ALARM_DAYS", default=365)
# Whether a line has to pass a test with frames before it is handed over: required, advisory or off.
LONGLINE_LINE_TEST = LineTestMode.read(env.str("LONGLINE_LINE_TEST", default="required"))
# Test frames are sent at this rate, in packet/s.
LONGLINE_LINE_TEST_PPS = env.int("LONGLINE_LINE_TEST_PPS", default=10000)
# How paths between tunnel endpoints are watched: 300x3 is a packet every 300 ms, and down without 3 of them.
LONGLINE_PATH_WATCH = PathWatch.read(env.str("LONGLINE_PATH_WATCH", default="300x3"))

# An alarm tells of backbone interfaces that lose more than this part of their frames over ten minutes, and of
# routers whose VPP had no more than this part of its buffers left.
LONGLINE_LOSS_ALARM_RATIO = env.float("LONGLINE_LOSS_ALARM_RATIO", default=0.0001)
LONGLINE_BUFFER_ALARM_RATIO = env.float("LONGLINE_BUFFER_ALARM_RATIO", default=0.1)
# Test frames are sent so often between all routers with lines between them, in seconds; 0: never.
LONGLINE_PROBE_EVERY_S = env.int("LONGLINE_PROBE_EVERY_S", default=300)

# A silent router for which nothing speaks is down after so many seconds. Below 600 the far ends' counters,
# which are added up by 5 minutes, could not speak in time.
LONGLINE_SILENCE_IS_DOWN_S = max(600, env.int("LONGLINE_SILENCE_IS_DOWN_S", default=600))

# Link loss forwarding: so many seconds a link has to be lost before the other end's is taken down, and back
# before that one is set up again (portal.vll.link_loss_decision).
LONGLINE_LINK_LOSS_DOWN_S = max(2, env.int("LONGLINE_LINK_LOSS_DOWN_S", default=10))
LONGLINE_LINK_LOSS_UP_S = max(2, env.int("LONGLINE_LINK_LOSS_UP_S", default=10))

# Where webhooks may lead: networks that are no part of the Internet and allowed nevertheless, for everybody's
# webhooks and for the NOC's own, on any port; and the ports for all others.
LONGLINE_WEBHOOK_NETWORKS = env.list("LONGLINE_WEBHOOK_NETWORKS", default=[])
LONGLINE_WEBHOOK_NOC_NETWORKS = env.list("LONGLINE_WEBHOOK_NOC_NETWORKS", default=[])
LONGLINE_WEBHOOK_PORTS = env.list("LONGLINE_WEBHOOK_PORTS", cast=int, default=[443, 8443])
LONGLINE_WEBHOOK_ALLOW_HTTP = env.bool("LONGLINE_WEBHOOK_ALLOW_HTTP", default=False)
# Certificates (PEM) that are trusted beside the world's: of the CA of the ISP's own systems.
LONGLINE_WEBHOOK_CA_FILE = env.str("LONGLINE_WEBHOOK_CA_FILE", default="")
# After so many days of nothing but failures a webhook is disabled.
LONGLINE_WEBHOOK_DISABLE_DAYS = env.int("LONGLINE_WEBHOOK_DISABLE_DAYS", default=5)
# How long it is kept what webhooks and readers of mails were sent, in days.
LONGLINE_WEBHOOK_LOG_DAYS = env.int("LONGLINE_WEBHOOK_LOG_DAYS", default=30)

# Where each process keeps what it counts, for the metrics process of this machine to add up: a folder that a
# restart of the machine empties, such as /run/longline/metrics. Without it requests and tasks are not shown.
LONGLINE_METRICS_DIR = env.str("LONGLINE_METRICS_DIR", default="")

# Which file a worker, beat or the relay touches every few seconds while it works, for health checks.
LONGLINE_ALIVE_FILE = env.str("LONGLINE_ALIVE_FILE", default="")

# Below these, an address is a secret: a link that was mailed to somebody. No log shows what follows.
SECRET_ADDRESSES = ("/invitations/", "/password/new/", "/unsubscribe/", "/account/email/confirm/")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "portal.core.json_log.formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        # What is sent to agents and receivers is told by those who send it, with what came of it.
        "httpx": {"level": "WARNING"},
        # Without Django's own handlers, which print and mail whole addresses.
        "django": {"handlers": [], "level": "INFO"},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
    },
}
