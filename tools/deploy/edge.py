"""What policies of your own have to allow before the edge can be used (docs/edge.md#turn-it-on): that of the bucket in
`ExistingBucket`, and that of the key in `KmsKeyArn`.

The distribution gets its id in the first deployment with `Edge=true`, so this is checked after a deployment, and stops
none. Until then, `larder edge enable` refuses, and clients notice nothing.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tools.deploy.bucket import PREFIX, Bucket, Problem, as_list, read_policy

SERVICE = "cloudfront.amazonaws.com"
_EQUALS = ("StringEquals", "StringLike", "ArnEquals", "ArnLike")

Statement = dict[str, Any]


def bucket_problems(bucket: Bucket, distribution: str) -> Iterator[Problem]:
    """`distribution` is an ARN."""
    wanted = bucket_statement(bucket, distribution)
    policy = read_policy(bucket)
    if not any(_allows(one, wanted) for one in as_list(policy["Statement"])):
        changed = _with(policy, wanted)
        yield Problem(
            f"the policy of the bucket {bucket.name} does not let the edge in",
            bucket.command("put-bucket-policy", policy=json.dumps(changed)),
        )


def bucket_statement(bucket: Bucket, distribution: str) -> Statement:
    return {
        "Sid": "Edge",
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"],
        "Resource": f"arn:{bucket.partition}:s3:::{bucket.name}/{PREFIX}*",
        "Condition": {
            "StringEquals": {"aws:SourceArn": distribution, "aws:SourceAccount": bucket.account}
        },
    }


def key_problems(kms: Any, key: str, distribution: str) -> Iterator[Problem]:
    """`key` and `distribution` are ARNs."""
    wanted = key_statement(distribution)
    try:
        policy = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    except ClientError as error:
        code = error.response["Error"]["Code"]
        yield Problem(
            f"you cannot read the policy of the key in KmsKeyArn ({code}). See whether it has the statement of "
            "docs/edge.md",
            shlex.join(["aws", "kms", "get-key-policy", "--key-id", key, "--output", "text"]),
        )
        return
    if not any(_allows(one, wanted) for one in as_list(policy["Statement"])):
        words = ["aws", "kms", "put-key-policy", "--key-id", key, "--policy-name", "default"]
        changed = json.dumps(_with(policy, wanted))
        yield Problem(
            "the policy of the key in KmsKeyArn does not let the edge in",
            shlex.join([*words, "--policy", changed]),
        )


def key_statement(distribution: str) -> Statement:
    return {
        "Sid": "Edge",
        "Effect": "Allow",
        "Principal": {"Service": SERVICE},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:SourceArn": distribution}},
    }


def _with(policy: Mapping[str, Any], statement: Statement) -> dict[str, Any]:
    """The policy with the statement in place of one for another distribution."""
    kept = [one for one in as_list(policy["Statement"]) if one.get("Sid") != statement["Sid"]]
    return {**policy, "Statement": [*kept, statement]}


def _allows(statement: Mapping[str, Any], wanted: Statement) -> bool:
    """Whether a statement allows what `wanted` does, perhaps more, and for no other reason than the distribution."""
    principal = statement.get("Principal")
    services = as_list(principal.get("Service", [])) if isinstance(principal, dict) else []
    actions = as_list(statement.get("Action", []))
    service = wanted["Action"][0].partition(":")[0]
    resources = as_list(statement.get("Resource", []))
    return (
        statement["Effect"] == "Allow"
        and SERVICE in services
        and ({f"{service}:*", "*"} & set(actions) or set(wanted["Action"]) <= set(actions))
        and bool({wanted["Resource"], wanted["Resource"].replace(PREFIX, ""), "*"} & set(resources))
        and _holds(statement.get("Condition", {}), wanted["Condition"]["StringEquals"])
    )


def _holds(condition: Mapping[str, Any], of_edge: Mapping[str, str]) -> bool:
    """Whether every test of the condition is one that requests of the distribution pass."""
    values = {"aws:SourceAccount": of_edge["aws:SourceArn"].split(":")[4], **of_edge}
    return all(
        operator in _EQUALS and values.get(name) in as_list(allowed)
        for operator, tests in condition.items()
        for name, allowed in tests.items()
    )
