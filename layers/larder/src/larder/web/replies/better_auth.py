"""Replies of `/api/auth` that only say that something was done. What failed is answered with an error."""

from typing import Literal, TypedDict


class StatusJson(TypedDict):
    status: Literal[True]


class SuccessJson(TypedDict):
    success: Literal[True]
