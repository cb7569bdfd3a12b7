"""Mail that was sent, to be read on this machine: `/_local/outbox`. No part of what is deployed."""
