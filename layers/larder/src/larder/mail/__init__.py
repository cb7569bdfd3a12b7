"""Mail: what it says, and how it leaves: by SES, or into the outbox."""
