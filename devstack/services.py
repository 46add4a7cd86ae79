"""PostgreSQL and Redis, the services that every part of the portal needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devstack.databases import postgres, redis
from devstack.process import Server, free_ports


@dataclass(frozen=True, slots=True)
class Services:
    postgres: Server
    redis: Server

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def redis_url(self) -> str:
        return self.redis.url


@contextmanager
def running(
    *, folder: Path, logs: Path, durable: bool = True, kept: bool = False, template: Path | None = None
) -> Iterator[Services]:
    """Run private services on free ports. At the end, `folder` is emptied unless `kept` is true.

    `template` is a PostgreSQL cluster that is copied at the start; see `devstack.databases.postgres.running`.
    """
    postgres_port, redis_port = free_ports(2)
    with (
        postgres.running(
            folder=folder / "postgres",
            log=logs / "postgres.log",
            port=postgres_port,
            durable=durable,
            kept=kept,
            template=template,
        ) as database,
        redis.running(folder=folder / "redis", log=logs / "redis.log", port=redis_port) as broker,
    ):
        yield Services(postgres=database, redis=broker)
