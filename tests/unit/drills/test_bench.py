"""``python -m bench`` reports which benchmarks failed."""

import pytest

from bench import __main__ as bench


def test_the_last_line_names_the_benchmarks_that_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A negative status is the number of the signal that ended the process.
    statuses = {"mtu": 0, "orders": 1, "pages": -9}
    monkeypatch.setattr(bench, "_alone", lambda name: statuses[name])
    assert bench.main(list(statuses)) != 0
    assert capsys.readouterr().out.splitlines()[-1] == "failed: orders, pages"


def test_a_benchmark_that_ends_by_a_signal_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_alone", lambda name: -9)
    assert bench.main(["mtu", "orders"]) != 0


def test_the_last_line_reports_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "_alone", lambda name: 0)
    assert bench.main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "every benchmark was measured"
