"""The calls of the checks and the IAM actions that allow them. docs/operator-cli.md lists these actions."""

from botocore.exceptions import ClientError

ACTIONS = {
    "DescribeStacks": "cloudformation:DescribeStacks",
    "ListStackResources": "cloudformation:ListStackResources",
    "DetectStackDrift": "cloudformation:DetectStackDrift",
    "DescribeStackDriftDetectionStatus": "cloudformation:DescribeStackDriftDetectionStatus",
    "DescribeStackResourceDrifts": "cloudformation:DescribeStackResourceDrifts",
    "ListFunctions": "lambda:ListFunctions",
    "GetLayerVersionByArn": "lambda:GetLayerVersion",
    "GetAccountSettings": "lambda:GetAccountSettings",
    "DescribeTable": "dynamodb:DescribeTable",
    "DescribeContinuousBackups": "dynamodb:DescribeContinuousBackups",
    "ListSubscriptionsByTopic": "sns:ListSubscriptionsByTopic",
    "DescribeAlarms": "cloudwatch:DescribeAlarms",
    "GetMetricData": "cloudwatch:GetMetricData",
    "GetQueueAttributes": "sqs:GetQueueAttributes",
    "DescribeRule": "events:DescribeRule",
}
"""By the name of the call."""

_DENIED = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}


def denied_action(error: ClientError) -> str | None:
    """The action that the caller lacks, or None if the call failed for another reason."""
    if error.response["Error"]["Code"] not in _DENIED:
        return None
    return ACTIONS.get(error.operation_name, error.operation_name)
