"""Send email with Amazon SES."""

from email.headerregistry import Address
from email.utils import formataddr

from larder import aws
from larder.mail.models import MailRefused, Message


def send(message: Message, *, sender: str, sender_name: str) -> str:
    """Send one message. Returns its id in SES. Raises MailRefused, TryAgain."""
    try:
        reply = aws.sesv2().send_email(
            FromEmailAddress=formataddr((sender_name, _on_the_wire(sender))),
            Destination={"ToAddresses": [_on_the_wire(message.to)]},
            Content={
                "Simple": {
                    "Subject": {"Data": message.subject, "Charset": "UTF-8"},
                    "Body": {
                        "Text": {"Data": message.text, "Charset": "UTF-8"},
                        "Html": {"Data": message.html, "Charset": "UTF-8"},
                    },
                }
            },
        )
    except aws.ClientError as error:
        raise MailRefused(aws.error_code(error)) from None
    return reply["MessageId"]


def _on_the_wire(address: str) -> str:
    """The address in the form that SES needs: the local part quoted if necessary, and the domain in ASCII.

    Without quotes, SES would take a comma as the end of the address. It accepts only ASCII.
    """
    local, _, domain = address.rpartition("@")
    if not domain.isascii():
        # IDNA 2008. Python's own codec uses IDNA 2003, which maps some domains to other ones.
        import idna

        domain = idna.encode(domain).decode()
    return Address(username=local, domain=domain).addr_spec
