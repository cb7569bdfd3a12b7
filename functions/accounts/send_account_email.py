"""Invoked by other functions"""

from typing import Any

from larder import clock
from larder.accounts import emails
from larder.accounts.email_jobs import EmailJob, parse_job
from larder.accounts.emails import Delivery
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def send_account_email(job: EmailJob) -> Delivery:
    """Look the address up, make the link, and send it or have the integrator's function send it."""
    return emails.deliver(job, now=clock.now())


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """The function that Lambda calls. Failed events are retried, then sent to the dead-letter queue."""
    job = parse_job(event)
    delivery = send_account_email(job)
    logger().info(
        "email job done",
        extra={
            "kind": job.kind,
            "outcome": delivery.outcome,
            "user_id": delivery.user_id,
            "message_id": delivery.message_id,
        },
    )
