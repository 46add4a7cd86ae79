# The portal: servers, workers, beat and setup are this one image with different commands.
#   docker build -f deploy/docker/portal.Dockerfile -t longline-portal .
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
COPY requirements.txt /tmp/requirements.txt
RUN python3 -m venv /opt/longline/venv \
    && /opt/longline/venv/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
        -r /tmp/requirements.txt \
    && /opt/longline/venv/bin/pip uninstall --quiet --yes pip setuptools

FROM ${PYTHON_IMAGE} AS translations
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends gettext >/dev/null
COPY locale /locale
RUN for language in /locale/*/LC_MESSAGES; do \
        msgfmt --check-format --output-file="$language/django.mo" "$language/django.po" || exit 1; done

FROM ${PYTHON_IMAGE} AS documentation
COPY tools/docs/requirements.txt /tmp/requirements.txt
RUN pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r /tmp/requirements.txt
WORKDIR /src
COPY pyproject.toml ./
COPY tools/docs tools/docs
COPY docs docs
RUN tools/docs/build sphinx-build /docs

FROM ${PYTHON_IMAGE} AS portal
# The id 10001 is unused on the host too. Named volumes start as copies of these folders.
RUN groupadd --gid 10001 longline \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin longline \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/longline /var/lib/longline/pki \
    && install -d -o 10001 -g 10001 -m 0755 /run/longline /run/longline/metrics \
    && install -d -m 0755 /srv/longline /var/lib/longline-static
COPY --from=build /opt/longline/venv /opt/longline/venv
WORKDIR /srv/longline
COPY manage.py pyproject.toml ./
COPY portal portal
COPY provisioning provisioning
COPY templates templates
COPY static static
COPY --from=translations /locale locale
COPY --from=documentation /docs /srv/longline-docs
COPY deploy/docker/setup /usr/local/bin/longline-setup
ENV PATH=/opt/longline/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=portal.settings \
    LONGLINE_PKI_DIR=/var/lib/longline/pki \
    LONGLINE_METRICS_DIR=/run/longline/metrics \
    LONGLINE_ALIVE_FILE=/tmp/alive \
    LONGLINE_DOCS_DIR=/srv/longline-docs \
    STATIC_ROOT=/var/lib/longline-static
# Files written at build time are readable for all; none is a secret.
RUN python3 -m compileall -q -j 0 portal provisioning
USER 10001:10001
EXPOSE 8000 8001 8443 9471
CMD ["gunicorn", "--config", "python:portal.processes.gunicorn_web", "--bind", "0.0.0.0:8000", "--workers", "2", "--no-control-socket"]

# With the demonstration's provider: two routers, two customers, one order.
FROM portal AS demo
USER root
RUN install -d -o 10001 -g 10001 -m 0700 /demo
USER 10001:10001
COPY devstack devstack
