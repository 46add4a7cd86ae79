"""The private PostgreSQL and Redis are not shared, and are removed afterwards."""

import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from devstack import services
from devstack.databases import postgres
from devstack.process import accepts, free_ports


def setting(database_url: str, name: str) -> str:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        assert row is not None
        return str(row[0])


def test_services_leave_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "services"
    with services.running(folder=folder, logs=tmp_path / "log") as running:
        port = int(setting(running.database_url, "port"))
        assert redis.Redis.from_url(running.redis_url).ping()
        assert accepts(port)
    assert not accepts(port)
    assert list(folder.iterdir()) == []


def test_commits_are_durable_unless_a_test_disables_it(tmp_path: Path, private_services) -> None:
    [port] = free_ports(1)
    with postgres.running(folder=tmp_path / "pg", log=tmp_path / "pg.log", port=port, durable=True) as server:
        assert setting(server.url, "fsync") == "on"
        assert setting(server.url, "synchronous_commit") == "on"
    assert setting(private_services.database_url, "fsync") == "off"


def test_other_users_of_the_machine_need_the_password(private_services) -> None:
    without = private_services.database_url.replace(
        private_services.database_url.split(":")[2].split("@")[0], "guess"
    )
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(without)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url("redis://" + private_services.redis_url.split("@")[1]).ping()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand the cluster to another account")
def test_a_clone_in_a_private_folder_works_too(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    folder = private / "postgres"
    [port] = free_ports(1)
    with postgres.running(folder=folder, log=tmp_path / "pg.log", port=port, durable=False) as server:
        home = folder.resolve()
        assert setting(server.url, "data_directory") == str(home / "cluster")
        assert home.stat().st_mode & 0o077 == 0
    assert not home.exists()
    assert not folder.is_symlink()


def test_leftovers_of_a_killed_run_do_not_prevent_the_next(tmp_path: Path) -> None:
    stale = tmp_path / "pg" / "cluster"
    stale.mkdir(parents=True)
    (stale / "PG_VERSION").write_text("9.6\n")
    [port] = free_ports(1)
    with postgres.running(
        folder=tmp_path / "pg", log=tmp_path / "pg.log", port=port, durable=False
    ) as server:
        assert setting(server.url, "server_version_num") >= "150000"


def test_a_copied_cluster_has_the_rows_of_its_template_and_does_not_change_it(tmp_path: Path) -> None:
    log, [port, another] = tmp_path / "pg.log", free_ports(2)
    with tempfile.TemporaryDirectory(prefix="ll-template-") as name:
        # The database account needs to reach the cluster's folder.
        Path(name).chmod(0o711)
        template = Path(name) / "postgres"
        with (
            postgres.running(folder=template, log=log, port=port, durable=False, kept=True) as server,
            psycopg.connect(server.url) as connection,
        ):
            connection.execute("CREATE TABLE cows AS VALUES ('Alma')")
        for _ in range(2):
            with (
                postgres.running(
                    folder=tmp_path / "copy", log=log, port=another, durable=False, template=template
                ) as copy,
                psycopg.connect(copy.url) as connection,
            ):
                assert urlsplit(copy.url).password == urlsplit(server.url).password
                assert connection.execute("SELECT * FROM cows").fetchall() == [("Alma",)]
                connection.execute("DROP TABLE cows")
