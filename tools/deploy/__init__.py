"""`make deploy`: check the account, show what changes, deploy by `larder install`, and protect the stack."""
