"""Fixed windows: which requests pass, how long others wait, and what happens if the table fails."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from larder import aws
from larder.errors import TooManyRequests
from larder.instance import restart
from larder.rate_limits.models import CREDENTIALS, MAIL, Limit
from larder.rate_limits.service import limit_of, take
from larder.settings import settings
from tests.conftest import SetOption
from tests.faults import answering, error, unreachable
from tests.proofs.aws_calls import counted

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
THREE_IN_TEN = Limit(most=3, window_s=10)


def ask(times: int, what: str = "someone", *, at: datetime = NOON) -> list[int | None]:
    """For each request, None if it passes, or the seconds to wait if it does not."""
    return [ask_once(what, at) for _ in range(times)]


def ask_once(what: str, at: datetime) -> int | None:
    try:
        take(what, THREE_IN_TEN, now=at)
    except TooManyRequests as refused:
        return refused.retry_after_s
    return None


@pytest.mark.usefixtures("aws_in_memory")
class TestWindows:
    def test_as_many_requests_as_the_limit_pass(self) -> None:
        assert ask(5) == [None, None, None, 10, 10]

    def test_the_wait_is_in_whole_seconds_and_never_0(self) -> None:
        ask(3)
        assert ask(1, at=NOON + 3.2 * SECOND) == [7]
        assert ask(1, at=NOON + 9.999 * SECOND) == [1]

    def test_the_next_window_starts_at_zero(self) -> None:
        ask(4)
        assert ask(4, at=NOON + 10 * SECOND) == [None, None, None, 10]

    def test_each_caller_is_counted_separately(self) -> None:
        ask(4, "one")
        assert ask(1, "another") == [None]

    def test_refused_requests_do_not_count(self) -> None:
        ask(10)
        restart()
        ask(10)
        (item,) = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
        assert item["request_count"] == {"N": "3"}

    def test_a_window_is_removed_a_minute_after_its_end(self) -> None:
        ask(1)
        (item,) = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
        assert aws.deserialize(item) == {
            "what": "someone",
            "window": int(NOON.timestamp()),
            "request_count": 1,
            "expires_at": int(NOON.timestamp()) + 70,
        }

    def test_a_request_costs_one_call_and_a_refused_one_no_more(self) -> None:
        with counted() as calls:
            ask(4)
        assert [call.operation for call in calls.made] == ["UpdateItem"] * 4

    def test_a_caller_in_a_full_window_is_refused_without_a_call(self) -> None:
        ask(4)
        with counted() as calls:
            assert ask(100) == [10] * 100
        assert calls.made == []


@pytest.mark.usefixtures("aws_in_memory")
class TestTableFailures:
    @pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException", "ResourceNotFoundException"])
    def test_requests_pass_with_a_metric(self, code: str, capsys: pytest.CaptureFixture[str]) -> None:
        with answering("dynamodb", "UpdateItem", error(code)):
            assert ask(5) == [None] * 5
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(lines) == 5
        assert lines[0]["RateLimitStoreFailures"] == 1
        assert lines[0]["limit"] == "http"
        assert lines[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Larder/larder"

    def test_requests_pass_if_the_table_is_unreachable(self) -> None:
        with unreachable("dynamodb", "UpdateItem"):
            assert ask(4) == [None] * 4

    def test_a_window_known_to_be_full_still_refuses(self) -> None:
        ask(4)
        with unreachable("dynamodb", "UpdateItem"):
            assert ask(1) == [10]


@pytest.mark.usefixtures("environment")
class TestLimits:
    @pytest.fixture(autouse=True)
    def _switched_on(self, option: SetOption) -> None:
        option("http_rate_limit_enabled", "true")

    @pytest.mark.parametrize(
        "path",
        ["/sign-in/email", "/sign-up/email", "/change-password", "/verify-password", "/delete-user", "/change-email"],
    )
    def test_three_in_ten_seconds_for_passwords(self, path: str) -> None:
        assert limit_of(path) == CREDENTIALS == Limit(most=3, window_s=10)

    @pytest.mark.parametrize("path", ["/request-password-reset", "/send-verification-email"])
    def test_three_in_a_minute_for_mail(self, path: str) -> None:
        assert limit_of(path) == MAIL == Limit(most=3, window_s=60)

    @pytest.mark.parametrize("path", ["/get-session", "/reset-password/{token}", "/api-key/create", "/sign-inn", "/ok"])
    def test_a_hundred_in_ten_seconds_by_default(self, path: str) -> None:
        assert limit_of(path) == Limit(most=100, window_s=10)

    def test_the_default_is_an_option(self, option: SetOption) -> None:
        option("http_rate_limit_max", 7)
        option("http_rate_limit_window_seconds", 60)
        assert limit_of("/get-session") == Limit(most=7, window_s=60)

    def test_no_limit_for_the_verification_of_keys(self) -> None:
        assert limit_of("/api-key/verify") is None

    def test_no_limit_if_disabled(self, option: SetOption) -> None:
        option("http_rate_limit_enabled", "false")
        assert limit_of("/sign-in/email") is None
