"""`python -m larder_proxy`, and what larder.pyz runs."""

from larder_proxy.command import program

program()
