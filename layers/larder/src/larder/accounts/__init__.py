"""User accounts: users, passwords, sessions, and the email that Larder sends to users."""
