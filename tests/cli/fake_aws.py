"""A server that answers every AWS call with the response that the test sets.

It replaces CloudFormation, and for errors that moto never returns.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.web_server import Quiet, listening


@dataclass
class FakeAws:
    """`url` goes into an AWS_ENDPOINT_URL_* variable. `bodies` are the request bodies, `requests` the same parsed."""

    url: str = ""
    status: int = 200
    body: bytes = b""
    bodies: list[str] = field(default_factory=list)
    requests: list[dict[str, list[str]]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    physical_ids: dict[str, str] = field(default_factory=dict)
    """The reply to DescribeStackResource, by logical id."""

    @classmethod
    @contextmanager
    def running(cls) -> "Iterator[FakeAws]":
        fake = cls()

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                fake.bodies.append(received)
                fake.requests.append(parse_qs(received))
                fake.authorizations.append(self.headers.get("Authorization", ""))
                body = fake._resource(fake.requests[-1]) or fake.body
                self.send_response(fake.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815 - the name that the base class calls

        with listening(Handler) as fake.url:
            yield fake

    def holds_stack(
        self, outputs: Mapping[str, str], parameters: Mapping[str, str], description: str = "Larder: a cache."
    ) -> None:
        """Answer DescribeStacks with one stack."""
        described = _members("Outputs", "Output", outputs) + _members("Parameters", "Parameter", parameters)
        self.status = 200
        self.body = (
            '<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">'
            "<DescribeStacksResult><Stacks><member><StackName>larder</StackName>"
            "<CreationTime>2026-01-01T00:00:00Z</CreationTime>"
            f"<Description>{description}</Description><StackStatus>CREATE_COMPLETE</StackStatus>{described}"
            "</member></Stacks>"
            "</DescribeStacksResult></DescribeStacksResponse>"
        ).encode()

    def _resource(self, request: Mapping[str, list[str]]) -> bytes | None:
        if request.get("Action") != ["DescribeStackResource"]:
            return None
        (logical_id,) = request["LogicalResourceId"]
        return (
            "<DescribeStackResourceResponse><DescribeStackResourceResult><StackResourceDetail>"
            f"<LogicalResourceId>{logical_id}</LogicalResourceId>"
            f"<PhysicalResourceId>{escape(self.physical_ids[logical_id])}</PhysicalResourceId>"
            "</StackResourceDetail></DescribeStackResourceResult></DescribeStackResourceResponse>"
        ).encode()

    def refuses(self, status: int, code: str, message: str) -> None:
        """Return an error in CloudFormation's format."""
        self.status = status
        self.body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
            f"<Message>{escape(message)}</Message></Error></ErrorResponse>"
        ).encode()

    def refuses_in_json(self, status: int, code: str, message: str) -> None:
        """Return an error in DynamoDB's format."""
        self.status = status
        self.body = json.dumps({"__type": f"com.amazon#{code}", "message": message}).encode()


def _members(plural: str, singular: str, values: Mapping[str, str]) -> str:
    members = "".join(
        f"<member><{singular}Key>{escape(key)}</{singular}Key>"
        f"<{singular}Value>{escape(value)}</{singular}Value></member>"
        for key, value in values.items()
    )
    return f"<{plural}>{members}</{plural}>"
