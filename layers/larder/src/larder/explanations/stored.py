"""Why a stored run missed, for those who look at it."""

from datetime import datetime

from larder.explanations.models import Caller, Explained, NoCauses
from larder.explanations.service import explain_stored
from larder.runs.causes import Reader
from larder.runs.models import Run


def explained_run(
    run: Run, caller: Caller, reader: Reader, *, against: str | None, now: datetime
) -> Explained:
    """The stored explanation, or with `against` a new comparison. Raises TooManyRequests, InvalidValue."""
    if not reader.sees(run):
        return Explained(missing=NoCauses.NO_INPUTS)
    if against is not None:
        return explain_stored(caller, run, against=against, now=now)
    if run.explanation is not None:
        return Explained(run.explanation)
    return Explained(missing=NoCauses.NO_BASELINE if run.has_inputs else NoCauses.NO_INPUTS)
