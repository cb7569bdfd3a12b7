"""`make deploy`: check the account, show what changes, run `sam deploy`, and protect the stack."""
