"""The settings of every installation. Environment variables configure what differs (12factor.net/config).

Each variable NAME can also come from a file: NAME_FILE is the path of a file that contains the value.
"""

import sys
from email.utils import formataddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pghistory
from csp.constants import NONE, SELF

from portal.celery_tasks import EVERY_S, SYNC_NETBOX, TASK_QUEUES
from portal.core.environment import ActivationTestMode, Environment, read_database_url
from portal.core.network.path_bfd import PathWatch
from portal.core.provider import Provider
from portal.core.redis_servers import KEEPALIVE, read_redis_url

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

SECRET_KEY = env.str("SECRET_KEY")
# Earlier keys, newest first. Signatures and encrypted values that were made with them stay valid.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
TOKEN_PEPPER = env.str("TOKEN_PEPPER")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1"])
BASE_URL = env.str("BASE_URL", default="http://localhost:8000")
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# The provider's name and contact, which customers see on each page and in each mail.
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
    "portal.underlay",
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
    "portal.core.http.ForwardedProtoMiddleware",
    "portal.metrics.requests_and_tasks.RequestMetricsMiddleware",
    "portal.core.http.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.web.page.middleware.PageGZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.core.db.sessions.PlanReadsWithValues",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.accounts.language.LanguageMiddleware",
    "portal.core.reader_texts.ReaderZoneMiddleware",
    "portal.accounts.sign_in.SecondFactorMiddleware",
    "portal.audit.actor.AuditMiddleware",
    "portal.core.db.replica.ReplicaMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.web.page.middleware.PartialRequestMiddleware",
    "portal.web.page.live.LivePartMiddleware",
    # This must come before any view, and before Django reads the CSRF token from the request body.
    "portal.web.page.middleware.UploadLimitMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
# The template tags and filters of a feature are in the folder of the feature.
_TEMPLATE_LIBRARIES = {
    "activation_tests": "portal.web.lines.activation_tests",
    "adoptions": "portal.web.noc.adoption.found_lines",
    "alarms": "portal.web.noc.alarms.alarm_tags",
    "diagnosis": "portal.web.lines.diagnosis",
    "events": "portal.web.lines.events",
    "history": "portal.web.noc.history",
    "imports": "portal.web.noc.imports",
    "map_markup": "portal.web.noc.map.map_markup",
    "navigation": "portal.web.page.navigation",
    "netbox": "portal.web.noc.netbox",
    "noc_orders": "portal.web.noc.orders",
    "noc_staff": "portal.web.noc.staff",
    "paths": "portal.web.lines.paths",
    "provider": "portal.web.page.provider",
    "vlans": "portal.web.port_page",
    "webhooks": "portal.web.webhooks",
}
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
            "libraries": _TEMPLATE_LIBRARIES,
            # The tags and filters that most templates use. Templates need not load them.
            "builtins": [
                "django.templatetags.i18n",
                "django.templatetags.static",
                "portal.web.fields.base",
                "portal.web.page.badges",
                "portal.web.page.components",
                "portal.web.page.live",
                "portal.web.page.units",
            ],
        },
    },
]

# The portal supports only PostgreSQL, because PostgreSQL's constraints enforce the invariants.
_DIRECT_URL = env.str("DATABASE_DIRECT_URL", default="")
# After this number of executions, a statement is planned once per connection: planning the statements of an
# order took longer than running them. Tasks do not use this (portal.celery). It is off by default with a
# pooler, because prepared statements belong to a session.
_PREPARE_AFTER = env.int("DATABASE_PREPARE_AFTER", default=3 if not _DIRECT_URL else 0) or None
_OPTIONS = {"server_side_binding": True, "prepare_threshold": _PREPARE_AFTER}
_DATABASE = read_database_url(env.str("DATABASE_URL"), variable="DATABASE_URL")
DATABASES: dict[str, Any] = {
    "default": {
        **_DATABASE,
        "CONN_MAX_AGE": env.int("DATABASE_CONN_MAX_AGE", default=60),
        "CONN_HEALTH_CHECKS": True,
        # A cursor that outlives its transaction needs the same session, which a pooler does not guarantee.
        "DISABLE_SERVER_SIDE_CURSORS": bool(_DIRECT_URL),
        "OPTIONS": {**_DATABASE["OPTIONS"], **_OPTIONS},
    },
}
# The database for connections that bypass the pooler in DATABASE_URL (portal.core.db.sessions).
DATABASE_DIRECT = read_database_url(_DIRECT_URL, variable="DATABASE_DIRECT_URL") if _DIRECT_URL else {}
# A streaming replica for graphs, lists and exports (portal.core.db.replica). "" disables it.
if _REPLICA_URL := env.str("DATABASE_REPLICA_URL", default=""):
    _REPLICA = read_database_url(_REPLICA_URL, variable="DATABASE_REPLICA_URL", takes_writes=False)
    DATABASES["replica"] = {
        **_REPLICA,
        "CONN_MAX_AGE": DATABASES["default"]["CONN_MAX_AGE"],
        "CONN_HEALTH_CHECKS": True,
        # If the replica does not answer in time, the query goes to the primary. Writes are refused, even if
        # the address belongs to a server that accepts writes.
        "OPTIONS": {
            **_REPLICA["OPTIONS"],
            "server_side_binding": True,
            "prepare_threshold": None,
            "connect_timeout": 2,
            "tcp_user_timeout": 5000,
            "options": "-c default_transaction_read_only=on",
        },
    }
# The maximum age of the replica's newest commit, in seconds. A replica that is further behind is not used.
LONGLINE_REPLICA_MAX_AGE_S = env.int("LONGLINE_REPLICA_MAX_AGE_S", default=10)
# The audit trail stores the acting user with each event, and events never change. The audit app owns the
# triggers, although they are on tables of other apps. portal/audit/apps.py updates them after each migrate.
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
ACCOUNT_ADAPTER = "portal.accounts.sign_in.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "portal.web.account.account.SignInForm",
    "change_password": "portal.web.account.account.OtherPasswordForm",
    "set_password": "portal.web.account.account.FirstPasswordForm",
    "reset_password_from_key": "portal.web.account.account.ForgottenPasswordForm",
    "reset_password": "portal.accounts.own_account.ResetPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
# Addresses need no verification: the NOC enters them, or an invitation mail has reached them.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
# Each request sends a mail to an address that may belong to another person, so the number is limited.
ACCOUNT_RATE_LIMITS = {"manage_email": "5/h/user"}
ACCOUNT_PRESERVE_USERNAME_CASING = True
MFA_ADAPTER = "portal.accounts.sign_in.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = LONGLINE_PROVIDER.name
# A code stays valid for one more step: typing takes time, and phones' clocks may be slow (RFC 6238, 5.2).
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
# Whether NOC staff must set up TOTP before they can open any page.
LONGLINE_NOC_NEEDS_TOTP = env.bool("LONGLINE_NOC_NEEDS_TOTP", default=not DEBUG)

# OpenID Connect, off unless OIDC_SERVER_URL is set. Only users with an account can sign in with it.
SOCIALACCOUNT_ADAPTER = "portal.accounts.sign_in.SocialAdapter"
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

# The mail server, for example smtp+tls://user:password@host:587. By default, mails are only logged.
vars().update(env.email_url("EMAIL_URL", default="consolemail://"))
EMAIL_TIMEOUT = 10
EMAIL_SUBJECT_PREFIX = f"[{LONGLINE_PROVIDER.name}] "
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default=formataddr((LONGLINE_PROVIDER.name, "longline@localhost")))

# The networks of reverse proxies, such as 10.0.0.0/29. Only their X-Forwarded-For and X-Forwarded-Proto are
# believed.
LONGLINE_TRUSTED_PROXIES = env.list("LONGLINE_TRUSTED_PROXIES", default=[])

# The language of texts that are not for one reader: stored texts and texts for programs (ADR 40).
LANGUAGE_CODE = "en"
# The name of each language is written in that language, for readers who understand no other.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
# The message catalogues. `make messages` extracts them from sources; `make translations` compiles them.
LOCALE_PATHS = [BASE_DIR / "locale"]
# The cookie with the language of a visitor who has not signed in. The account stores the language of a user.
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
# The folder of the documentation site, which `make docs` builds.
LONGLINE_DOCS_DIR = Path(env.str("LONGLINE_DOCS_DIR", default=str(BASE_DIR / "build" / "docs")))
# The names of these folders contain versions, so the files in them never change.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/vendor/[^/]+-\d[^/]*/"

# Cookies are sent only over HTTPS if the portal's address begins with https.
SECURE_COOKIES = BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
CSRF_FAILURE_VIEW = "portal.processes.error_handlers.stale_form"
LANGUAGE_COOKIE_SECURE = SECURE_COOKIES
# The live process's URL for browsers. With "", or if the URL leads to the web processes, pages poll instead.
# The browser must send the portal's cookies to this URL: another origin must be the same host with another
# port.
LONGLINE_LIVE_URL = env.str("LONGLINE_LIVE_URL", default="/live/")
# The maximum number of pages that one live process serves at a time: in total, and for each user.
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
        "portal.api.rest.access_control.BearerTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.rest.request_bodies.BoundedJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["portal.api.rest.lists.StrictFilterBackend"],
    "DEFAULT_THROTTLE_CLASSES": ["portal.api.rest.access_control.PerTokenAndUser"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.openapi.operation.DocumentedOperation",
    "EXCEPTION_HANDLER": "portal.api.rest.exception_handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
    # No path has several formats, so the format is not a parameter of the URL.
    "URL_FORMAT_OVERRIDE": None,
    "STRICT_JSON": True,
}

# The cache with the limits of logins and API calls is in a separate Redis database.
_REDIS = read_redis_url(env.str("REDIS_URL"), variable="REDIS_URL")
_CACHE_URL = env.str("CACHE_URL", default="")
_CACHE = read_redis_url(_CACHE_URL, variable="CACHE_URL") if _CACHE_URL else _REDIS.with_database(1)
CACHES = {
    "default": {
        "BACKEND": "portal.core.redis_servers.FallbackRedisCache",
        # This is a list, because a string with commas would be split into several addresses.
        "LOCATION": [_CACHE.url],
        "KEY_PREFIX": "longline",
        "OPTIONS": {"patience_s": 0.5},
    },
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Longline",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "AUTHENTICATION_WHITELIST": ["portal.api.rest.access_control.BearerTokenAuthentication"],
    "POSTPROCESSING_HOOKS": [
        "portal.api.openapi.document.complete",
        "portal.api.openapi.examples.add_examples",
    ],
}

# Whether POST requests with an API token must have an Idempotency-Key.
LONGLINE_REQUIRE_IDEMPOTENCY_KEY = env.bool("LONGLINE_REQUIRE_IDEMPOTENCY_KEY", default=False)
# The maximum number of active tokens (neither revoked nor expired) of one user; 0 = no limit.
LONGLINE_API_TOKENS_EACH = env.int("LONGLINE_API_TOKENS_EACH", default=100)
# All tokens of a user together may send this many times as many requests as one token; 0 = no limit.
LONGLINE_API_USER_LIMIT_FACTOR = env.int("LONGLINE_API_USER_LIMIT_FACTOR", default=3)
# The maximum number of requests per minute with one API token; 0 = no limit.
LONGLINE_API_READS_PER_MIN = env.int("LONGLINE_API_READS_PER_MIN", default=3000)
LONGLINE_API_WRITES_PER_MIN = env.int("LONGLINE_API_WRITES_PER_MIN", default=1200)
# The maximum number of attempts per minute to enrol a router from one address; 0 = no limit.
LONGLINE_ENROL_PER_MIN = env.int("LONGLINE_ENROL_PER_MIN", default=20)

REDIS_URL = _REDIS.url
CELERY_BROKER_URL = _REDIS.broker_url
CELERY_BROKER_TRANSPORT = "portal.processes.celery_transport:" + (
    "SentinelTransport" if _REDIS.sentinels else "Transport"
)
# Results are not stored: PostgreSQL has the state, and a message only makes the work start sooner.
CELERY_TASK_IGNORE_RESULT = True
# Seconds, for tasks without another limit. The limit is longer than all timeouts of the two exchanges with a
# router (provisioning.agent_client.TOTAL_S). A longer task is killed, and a sweeper resumes its work.
CELERY_TASK_TIME_LIMIT = 90
# Seconds. No task may have a longer limit.
LONGEST_TASK_S = 3600
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# By default, Celery opens a database connection for each task. See portal.celery.keep_sound_connections.
CELERY_DB_REUSE_MAX = sys.maxsize
CELERY_TASK_DEFAULT_QUEUE = "provisioning"
CELERY_TASK_ROUTES = {task: {"queue": queue} for task, queue in TASK_QUEUES.items()}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Redis delivers a message again if it was not acknowledged for this time, which is longer than any task
    # runs. The work of a killed worker resumes earlier, because sweepers request it again.
    "visibility_timeout": LONGEST_TASK_S + 600,
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
    # A worker that waits for messages has no timeout. With these settings, it notices after 1 + 2 * 5 s that
    # Redis does not respond (by default after 51 s, see kombu.transport.redis). It notices a broken
    # connection after 5 + 3 * 2 s.
    "health_check_interval": 5,
    "socket_keepalive": True,
    "socket_keepalive_options": KEEPALIVE,
    **_REDIS.broker_options(patience_s=2),
}
# NetBox (docs/integrate/netbox.md). The synchronization is off unless NETBOX_URL is set.
NETBOX_URL = env.str("NETBOX_URL", default="")

# Beat only sends tasks of sweepers, which may run twice. Of several beat processes, only one sends.
CELERY_BEAT_SCHEDULER = "portal.processes.single_beat:SingleBeat"
CELERY_BEAT_SCHEDULE = {
    task: {"task": task, "schedule": float(every_s), "options": {"expires": every_s}}
    for task, every_s in EVERY_S.items()
    if NETBOX_URL or task != SYNC_NETBOX
}

NETBOX_TOKEN = env.str("NETBOX_TOKEN", default="")
# A file of trusted certificates, which replaces those of the system.
NETBOX_CA = env.str("NETBOX_CA", default="")
# The timeout of one read and the timeout of a whole response, in seconds; and the number of objects per page.
NETBOX_TIMEOUT_S = env.float("NETBOX_TIMEOUT_S", default=20)
NETBOX_TOTAL_S = env.float("NETBOX_TOTAL_S", default=120)
NETBOX_PAGE = env.int("NETBOX_PAGE", default=250)
NETBOX_SYNC_EVERY_S = env.int("NETBOX_SYNC_EVERY_S", default=900)
# Whether scheduled runs import the changes. Otherwise they only show the changes to NOC admins.
NETBOX_APPLY = env.bool("NETBOX_APPLY", default=True)
NETBOX_DEVICE_ROLES = env.list("NETBOX_DEVICE_ROLES", default=["router"])
NETBOX_DEVICE_TAGS = env.list("NETBOX_DEVICE_TAGS", default=[])
NETBOX_TENANT_TAGS = env.list("NETBOX_TENANT_TAGS", default=[])
NETBOX_UNI_TAG = env.str("NETBOX_UNI_TAG", default="longline-uni")
NETBOX_ENNI_TAG = env.str("NETBOX_ENNI_TAG", default="longline-enni")
NETBOX_CUSTOMER_FIELD = env.str("NETBOX_CUSTOMER_FIELD", default="longline_customer")
# The interface that has the addresses of tunnel endpoints. With "", the device's primary addresses are used.
NETBOX_LOOPBACK_INTERFACE = env.str("NETBOX_LOOPBACK_INTERFACE", default="loop0")
# Whether to "remove" the L2VPN of a line that ends, or to "decommission" it and keep it as a record.
NETBOX_AT_END = env.str("NETBOX_AT_END", default="remove")
# The secret of NetBox's webhook. With "", the webhook's address responds with 404.
NETBOX_WEBHOOK_SECRET = env.str("NETBOX_WEBHOOK_SECRET", default="")

# The folder with the CA and the portal's certificate: ca.pem, portal.pem, portal.key.
LONGLINE_PKI_DIR = Path(env.str("LONGLINE_PKI_DIR", default=str(BASE_DIR / ".run" / "pki")))
# "planning" reserves space for options, keys and any single failure; "exact" does not
# (docs/reference/mtu.md).
LONGLINE_MTU_POLICY = env.str("LONGLINE_MTU_POLICY", default="planning")
# Seconds from the release of a VNI, GRE key or GRE pair until another customer can get it (cool-down).
LONGLINE_HOLD_DOWN_S = env.int("LONGLINE_HOLD_DOWN_S", default=3600)
# Seconds during which a removal can be undone, for customers without another agreement; 0 = never.
LONGLINE_COOLING_OFF_S = env.int("LONGLINE_COOLING_OFF_S", default=604_800)

# The smallest bandwidth that can be ordered, in bit/s or with a unit. Existing lines may be smaller.
LONGLINE_MIN_CIR_BPS = env.rate("LONGLINE_MIN_CIR_BPS", default=1_000_000)
# The default for the bookable bandwidth of a new port, in per cent of its speed. 200 means 2 to 1.
LONGLINE_OVERSUBSCRIPTION_PERCENT = env.int("LONGLINE_OVERSUBSCRIPTION_PERCENT", default=100)
# The bookable fraction of a router's cores, and the frame size (bytes) that is assumed for a full line.
LONGLINE_CORE_HEADROOM = env.float("LONGLINE_CORE_HEADROOM", default=0.7)
LONGLINE_CAPACITY_FRAME = env.int("LONGLINE_CAPACITY_FRAME", default=512)

# How many days counters are kept: samples as reported, 5-minute values, hourly values and daily values.
LONGLINE_SAMPLE_DAYS = env.int("LONGLINE_SAMPLE_DAYS", default=2)
LONGLINE_FIVE_MINUTE_DAYS = env.int("LONGLINE_FIVE_MINUTE_DAYS", default=40)
LONGLINE_HOUR_DAYS = env.int("LONGLINE_HOUR_DAYS", default=731)
LONGLINE_DAY_DAYS = env.int("LONGLINE_DAY_DAYS", default=1827)
# How many days events of agents are kept. Duplicates are recognized for the same time.
LONGLINE_ROUTER_EVENT_DAYS = env.int("LONGLINE_ROUTER_EVENT_DAYS", default=90)
# How many days attempts to converge routers are kept. The last attempt of each router and the attempts of
# open orders are kept longer.
LONGLINE_ATTEMPT_DAYS = env.int("LONGLINE_ATTEMPT_DAYS", default=90)
# How many days cleared alarms are kept.
LONGLINE_ALARM_DAYS = env.int("LONGLINE_ALARM_DAYS", default=365)
# Whether a line must pass an activation test before it is handed over: required, advisory or off.
LONGLINE_LINE_TEST = ActivationTestMode.read(env.str("LONGLINE_LINE_TEST", default="required"))
# The rate of test frames, in frames per second.
LONGLINE_LINE_TEST_PPS = env.int("LONGLINE_LINE_TEST_PPS", default=10000)
# How paths between tunnel endpoints are watched. 300x3 sends a packet every 300 ms; 3 losses mean down.
LONGLINE_PATH_WATCH = PathWatch.read(env.str("LONGLINE_PATH_WATCH", default="300x3"))

# The limits of two alarms. The first is the fraction of its frames that a backbone interface loses in ten
# minutes. The second is the fraction of VPP's buffers that are free on a router.
LONGLINE_LOSS_ALARM_RATIO = env.float("LONGLINE_LOSS_ALARM_RATIO", default=0.0001)
LONGLINE_BUFFER_ALARM_RATIO = env.float("LONGLINE_BUFFER_ALARM_RATIO", default=0.1)
# Seconds between two probes of a path. All pairs of routers with lines between them are probed. 0 = never.
LONGLINE_PROBE_EVERY_S = env.int("LONGLINE_PROBE_EVERY_S", default=300)

# Seconds after which a silent router without other signs of life counts as down. The minimum is 600, because
# the counters of the far ends are added up per 5 minutes.
LONGLINE_SILENCE_IS_DOWN_S = max(600, env.int("LONGLINE_SILENCE_IS_DOWN_S", default=600))

# Link loss forwarding (portal.vll.operations.link_loss_forwarding): after DOWN_S seconds without a link at
# one end, the port at the other end is taken down. After UP_S seconds with a link, that port is set up again.
LONGLINE_LINK_LOSS_DOWN_S = max(2, env.int("LONGLINE_LINK_LOSS_DOWN_S", default=10))
LONGLINE_LINK_LOSS_UP_S = max(2, env.int("LONGLINE_LINK_LOSS_UP_S", default=10))

# The targets of webhooks. Private networks are refused unless they are in the first list, or for the NOC's
# own webhooks in the second list. In these networks any port is allowed; elsewhere, only the listed ports.
LONGLINE_WEBHOOK_NETWORKS = env.list("LONGLINE_WEBHOOK_NETWORKS", default=[])
LONGLINE_WEBHOOK_NOC_NETWORKS = env.list("LONGLINE_WEBHOOK_NOC_NETWORKS", default=[])
LONGLINE_WEBHOOK_PORTS = env.list("LONGLINE_WEBHOOK_PORTS", cast=int, default=[443, 8443])
LONGLINE_WEBHOOK_ALLOW_HTTP = env.bool("LONGLINE_WEBHOOK_ALLOW_HTTP", default=False)
# Additional trusted certificates (PEM), for example the CA of the ISP's own systems.
LONGLINE_WEBHOOK_CA_FILE = env.str("LONGLINE_WEBHOOK_CA_FILE", default="")
# A webhook is disabled after all its attempts have failed for this number of days.
LONGLINE_WEBHOOK_DISABLE_DAYS = env.int("LONGLINE_WEBHOOK_DISABLE_DAYS", default=5)
# How many days the log of webhook deliveries and mails is kept.
LONGLINE_WEBHOOK_LOG_DAYS = env.int("LONGLINE_WEBHOOK_LOG_DAYS", default=30)

# The folder for the counters of each process; the machine's metrics process adds them up. Use a folder that
# is emptied when the machine restarts, such as /run/longline/metrics. With "", there are no metrics of
# requests and tasks.
LONGLINE_METRICS_DIR = env.str("LONGLINE_METRICS_DIR", default="")

# A file that a worker or beat touches every few seconds while it works. Health checks use it.
LONGLINE_ALIVE_FILE = env.str("LONGLINE_ALIVE_FILE", default="")

# Paths from links in mails. The part of such a path after the prefix is a secret, which no log contains.
SECRET_ADDRESSES = ("/invitations/", "/password/new/", "/unsubscribe/", "/account/email/confirm/")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "portal.core.http.formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        # httpx logs no requests to agents and webhook receivers: the senders log them, with their results.
        "httpx": {"level": "WARNING"},
        # Remove Django's own handlers, which print and mail whole URLs.
        "django": {"handlers": [], "level": "INFO"},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
    },
}
