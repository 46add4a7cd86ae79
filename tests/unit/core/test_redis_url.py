"""REDIS_URL: the address of one server, or Sentinels; error messages name the mistake."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.core.redis_servers import RedisUrl, read_redis_url

THREE = (
    "sentinel://longline:p%40ss@r1,r2:26380,[2001:db8::3]:26379/2?service=main&sentinel_password=watch%20er"
)


def read(url: str) -> RedisUrl:
    return read_redis_url(url, variable="CACHE_URL")


def test_sentinels_are_hosts_with_ports_a_service_and_passwords() -> None:
    found = read(THREE)
    assert found.sentinels == (("r1", 26379), ("r2", 26380), ("2001:db8::3", 26379))
    assert (found.service, found.database) == ("main", 2)
    assert (found.username, found.password, found.sentinel_password) == ("longline", "p@ss", "watch er")


def test_celery_gets_a_url_for_each_sentinel_and_options() -> None:
    found = read(THREE)
    assert found.broker_url == (
        "sentinel://longline:p%40ss@r1:26379/2;sentinel://longline:p%40ss@r2:26380/2"
        ";sentinel://longline:p%40ss@[2001:db8::3]:26379/2"
    )
    options = found.broker_options(patience_s=5)
    assert (options["master_name"], options["sentinel_kwargs"]["password"]) == ("main", "watch er")


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("redis://:pw@r1:6379/0", "redis://:pw@r1:6379/1"),
        ("rediss://r1?ssl_cert_reqs=none", "rediss://r1/1?ssl_cert_reqs=none"),
        ("sentinel://:pw@r1,r2/0?service=main", "sentinel://:pw@r1,r2/1?service=main"),
    ],
)
def test_another_database_of_the_same_server(url: str, other: str) -> None:
    assert read(url).with_database(1).url == other


def test_the_url_of_a_single_server_stays_unchanged() -> None:
    found = read("redis://:pw@r1:6379/0")
    assert (found.sentinels, found.broker_url, found.broker_options(patience_s=5)) == ((), found.url, {})


WRONG = {
    "sentinel://:secret@r1,r2/0": "?service= has to say which service",
    "sentinel://:secret@r1/0?service=main&servcie=x": "its option servcie is none of",
    "sentinel://:secret@r1/main?service=main": "the number of a database",
    "sentinel://:secret@r1:port/0?service=main": "a name or an address, or one with :port",
    "sentinel://:secret@r1,,r3/0?service=main": "a name or an address, or one with :port",
}


@pytest.mark.parametrize(("url", "why"), WRONG.items())
def test_an_invalid_url_is_refused_with_its_reason_and_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(url)
    assert why in str(refused.value)
    assert str(refused.value).startswith("CACHE_URL is not an address of Sentinels: ")
    assert "secret" not in str(refused.value)
