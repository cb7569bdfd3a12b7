"""An OpenID provider at `/_local/provider`, to try company sign-in on one machine. This is not part of a deployment.

It has four people and no passwords: its page lists the people, and you choose one of them.
"""
