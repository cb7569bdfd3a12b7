"""The base of the models of JSON bodies."""

from pydantic import BaseModel, ConfigDict


class BodyModel(BaseModel):
    """Types are strict: "1" is not a number. Unknown fields are ignored: newer clients send more of them."""

    model_config = ConfigDict(strict=True)
