"""Amazon SES, by which mail leaves."""

from email.headerregistry import Address
from email.utils import formataddr

from larder import aws
from larder.mail.models import MailRefused, Message


def send(message: Message, *, sender: str, sender_name: str) -> str:
    """Hand over one message; returns SES's id of it. Raises MailRefused, TryAgain."""
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
    """The address as SES reads it: one address whatever it holds, and its domain as it stands in DNS.

    SES takes a comma for the end of an address unless what holds it is quoted. It takes no other letters than ASCII's.
    """
    local, _, domain = address.rpartition("@")
    if not domain.isascii():
        # The rules of 2008. By those of 2003, which Python's own codec has, mail for one domain goes to another.
        import idna

        domain = idna.encode(domain).decode()
    return Address(username=local, domain=domain).addr_spec
