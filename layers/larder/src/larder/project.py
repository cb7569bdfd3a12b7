"""What this project is called and where it is. Everything that names one of these takes it from here.

The owner of the repository fills in the addresses, then runs `make generate`. Until then nothing links to them: a
deployment serves the documentation of its version at `/docs`.
"""

NAME = "Larder"
PACKAGE = "larder-cache"
"""The wheel, as an index of Python packages lists it."""
REPOSITORY = ""
"""The address of the repository on GitHub, without a slash at the end, such as https://github.com/OWNER/larder."""
DOCUMENTATION = ""
"""The address of the documentation of the newest release, without a slash at the end."""
PLACEHOLDER = "OWNER/larder"
"""Stands for owner and name of the repository in docs/ and notes."""
# <<<cog versions.constant() >>>
VERSION = "0.3.0"
# <<<end>>>

_HOST = "https://github.com/"


def slug() -> str:
    """Owner and name of the repository, with a placeholder for an owner who is not known."""
    return REPOSITORY.removeprefix(_HOST) or PLACEHOLDER


def page(name: str, deployment: str = "") -> str:
    """Where to read a page such as `why#json`: at the address above, at a deployment, or else in the repository."""
    if base := DOCUMENTATION or (deployment and f"{deployment.rstrip('/')}/docs"):
        return f"{base}/{name}"
    path, mark, anchor = name.partition("#")
    return f"docs/{path}.md{mark}{anchor}"
