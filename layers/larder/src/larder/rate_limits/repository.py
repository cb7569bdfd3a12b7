"""The table of rate limits: one item for what is counted in one window, removed by its time to live."""

from larder import aws
from larder.settings import settings

_KEPT_S = 60
"""A window's item outlives it by so much, so that clocks may differ."""


def count(what: str, *, window: int, window_s: int, most: int) -> bool:
    """Add one to a window's count unless it is `most` already; False when it is.

    One conditional write, whatever the outcome. The window is part of the key, so none ever has to be begun. Raises
    TryAgain for every failure of the store.
    """
    values = {":one": 1, ":most": most, ":end": window + window_s + _KEPT_S}
    try:
        aws.dynamodb().update_item(
            TableName=settings().rate_limits_table,
            Key=aws.serialize({"what": what, "window": window}),
            UpdateExpression="SET expires_at = :end ADD request_count :one",
            ConditionExpression="attribute_not_exists(request_count) OR request_count < :most",
            ExpressionAttributeValues=aws.serialize(values),
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise aws.TryAgain from error
    return True
