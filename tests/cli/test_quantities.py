"""What people write: sizes, times, permissions."""

import click
import pytest

from larder_cli.quantities import permission, seconds, size_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1024", 1024),
        ("500 B", 500),
        ("1kB", 1000),
        ("1KB", 1000),
        ("500MB", 500 * 10**6),
        ("50GB", 50 * 10**9),
        ("50 gb", 50 * 10**9),
        ("50G", 50 * 10**9),
        ("1.5TB", 1_500_000_000_000),
        ("0.1 GB", 100_000_000),
        ("2PB", 2 * 10**15),
        ("1KiB", 1024),
        ("50GiB", 50 * 2**30),
        ("1.5 MiB", 1_572_864),
        (" 7 MB ", 7 * 10**6),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 XB", "1iB", "1,5GB", "1e9", "1GBB", "NaN"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no size"):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("12h", 43_200),
        ("30d", 2_592_000),
        ("4w", 2_419_200),
        ("1 D", 86_400),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "d", "1.5d", "-1d", "1y", "0s", "36501d", "999999999w"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter):
        seconds(text)


def test_permissions() -> None:
    assert permission("artifacts=read,write") == ("artifacts", ("read", "write"))
    assert permission(" artifacts = read , write ") == ("artifacts", ("read", "write"))


@pytest.mark.parametrize("text", ["", "artifacts", "artifacts=", "=read", "artifacts=read,"])
def test_what_is_no_permission(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no permission"):
        permission(text)
