"""The output of `larder why` for people: lines of text, and Markdown for a pull request or a job summary.

Both are made from the JSON, so that a reply of the deployment is shown as a comparison of two files. A newer deployment
can have kinds, hints and notes that this command does not know: it shows their names, or leaves them out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from larder.clock import from_ms
from larder.project import page
from larder.why.causes import ADVICE, Kind
from larder.why.hints import Hint
from larder.why.reasons import Evidence, Reason
from larder.why.records import MAX_NAMES, BaselineJson, CauseJson, ComparisonJson, SameHashJson
from larder_cli.output import human_duration, printable
from larder_cli.why.fix import FixesJson

_SHOWN_CAUSES = 8
_SHOWN_NAMES = 4

TITLES: Mapping[str, str] = {
    Kind.TURBO_JSON: "turbo.json",
    Kind.ENV_MODE: "env mode",
    Kind.TASK_ENV_MODE: "env mode",
    Kind.GLOBAL_FILE: "global file",
    Kind.GLOBAL_ENV: "global variable",
    Kind.GLOBAL_EXTERNAL: "lockfile",
    Kind.GLOBAL_INTERNAL: "root dependencies",
    Kind.EXTERNAL: "lockfile",
    Kind.ENV: "variable",
    Kind.DEFINITION: "turbo.json",
    Kind.EDGE: "task graph",
    Kind.VALUE: "variable",
}
"""Where the name of the kind is not what people say."""

HINTS: Mapping[str, str] = {
    Hint.LINE_ENDINGS: "only its line endings differ",
    Hint.LETTER_CASE: "only its letter case",
    Hint.IGNORED: "git ignores it, and the inputs in turbo.json name it",
    Hint.UNTRACKED: "not in git",
    Hint.UNCOMMITTED: "not committed",
    Hint.DEPENDENCIES: "dependencies: {}",
    Hint.SCRIPT: "the script {} changed",
    Hint.PACKAGES: "{}",
    Hint.NO_LOCKFILE: "no lockfile on one side",
    Hint.EVERY_PACKAGE: "another lockfile, package manager or a shared package",
    Hint.EXAMPLE: "for example {}",
    Hint.INFERRED: "inferred from the framework",
    Hint.VOLATILE_NAME: "its name says that it changes with each commit or job",
    Hint.MISSING_DEPENDENCY: "depends on {}, which only one of the runs has",
    Hint.OTHER_VERSION: "turbo {}",
}
_NOTES: Mapping[str, str] = {
    "not_cached": "cache is false: it is never cached",
    "turbo_version": "turbo {}: both versions give the same hashes",
    "not_hashed": "{} differs: turbo does not hash it",
    "passed_variable": "the value of {} differs: turbo does not hash the values of passThroughEnv",
}

_CHOSEN: Mapping[str, Sequence[str]] = {
    "ancestor": ("the nearest commit",),
    "hashes": ("the most equal hashes",),
    "newest": ("the newest run",),
}
"""Why the deployment compares with this run. Not if the caller has named it."""

_REASONS: Mapping[str, str] = {
    Reason.NOT_CACHED: "cache is false",
    Reason.TOO_LARGE: 'too large without preflight, so never stored. Set "preflight": true',
    Reason.NOT_ASKED: "the run did not ask the cache (the remote cache was off, or had no token)",
    Reason.UNUSABLE: "Larder had it, and turbo could not use the answer (signature, error or connection)",
    Reason.AT_ONCE: "another run built it at the same time",
    Reason.OTHER_SCOPE: "only in a scope that this credential does not read",
    Reason.HIDDEN: "hidden as older than the protection of the team,",
    Reason.CACHING_OFF: "caching was paused or disabled",
    Reason.DELETED: "deleted",
    Reason.EXPIRED: "expired",
    Reason.EVICTED: "evicted",
    Reason.REFUSED: "the upload was refused",
    Reason.UNKNOWN: "for an unknown reason",
}

_REFUSALS: Mapping[str, str] = {
    Evidence.READ_ONLY: "the credential only reads",
    Evidence.QUOTA_FULL: "the quota is full",
    Evidence.SIGNATURE_REQUIRED: "the team requires signatures",
    Evidence.SCOPES_FULL: "the space for own scopes is full",
    Evidence.STORAGE_FULL: "the deployment is full",
}

NOTHING = "nothing changed: every hash is that of the baseline"
_COMPARED = (
    "inputs, variables, external packages, settings in turbo.json, arguments and dependencies"
)

_Quote = Callable[[str], str]
"""How a name is shown: as it is, or as a code span of Markdown."""


def text(shown: ComparisonJson, deployment: str = "") -> Iterator[str]:
    """The lines for people. They cite the documentation of the deployment at this address."""
    yield _headline(shown, printable)
    for number, cause in enumerate(shown["causes"][:_SHOWN_CAUSES], 1):
        yield ""
        yield f"{number}. {cause_line(cause)} -> {_cost(cause)}"
        yield f"     {_reach(cause, printable)}"
        if cause["kind"] == Kind.UNKNOWN:
            yield f"     Compared: {_COMPARED}."
        advice = ADVICE.get(cause["advice"], "Read")
        yield f"     {advice} ({page('why#' + cause['advice'], deployment)})"
    others = [*_left_out(shown), *_others(shown, printable)]
    if others:
        yield ""
        yield from others


def markdown(shown: ComparisonJson) -> Iterator[str]:
    """The lines of a job summary or a comment. Names are in code spans, so that they are no markup and no mentions."""
    yield f"**Larder**: {_headline(shown, code_span)}"
    causes = shown["causes"][:_SHOWN_CAUSES]
    if causes:
        yield from ("", "| Cause | Tasks | Build time | Class |", "|---|---:|---:|---|")
    for cause in causes:
        time = human_duration(cause["buildMs"]) if cause["buildMs"] else ""
        line = cause_line(cause, code_span)
        yield f"| {line} | {_reached(cause)} | {time} | {cause['class'] or ''} |"
    if causes:
        yield ""
        yield "<details><summary>Tasks and advice</summary>"
        yield ""
        for cause in causes:
            advice = ADVICE.get(cause["advice"], "")
            yield f"- {cause_line(cause, code_span)}: {_reach(cause, code_span)}. {advice}"
        yield ""
        yield "</details>"
    for line in (*_left_out(shown), *_others(shown, code_span)):
        yield ""
        yield line


def fix_lines(shown: ComparisonJson, fixes: FixesJson) -> Iterator[str]:
    """The edits of --fix, and what a person can do about the other causes."""
    words = {"proven": "Edit", "refused": "Refused", "none": "No edit"}
    tasks, proven = _tasks(fixes["tasks"]), 0
    for fix in fixes["fixes"]:
        yield ""
        yield f"Cause {fix['cause'] + 1}, {cause_line(shown['causes'][fix['cause']])}"
        yield f"     {words[fix['status']]}: {fix['text']}"
        if fix["status"] == "proven":
            proven += 1
            yield from (line.removesuffix("\r") for line in fix["diff"].split("\n")[:-1])
            before, after = fix["keep"]
            yield f"Proven: {after} of {tasks} keep the hash when this differs; without the edit, {before}."
    if fixes["hits"]:
        before, after = fixes["hits"]
        yield ""
        yield (
            f"With the edit{'' if proven == 1 else 's'}, {after} of the {tasks} of the last run hit if nothing else "
            f"differs in the next one; without, {before}. The first run afterwards builds once what changes."
        )


def cause_line(cause: CauseJson, quoted: _Quote = printable) -> str:
    """The cause in one line, such as `file: packages/lib/src/a.js changed (not in git)`."""
    about = [
        HINTS[hint["hint"]].format(_some(hint["values"], quoted))
        for hint in cause["hints"]
        if hint["hint"] in HINTS
    ]
    if cause["commit"]:
        about.append(f"commit {quoted(cause['commit'])}")
    # What changed says more than that it changed.
    what = _some(cause["values"], quoted) or cause["how"]
    line = f"{TITLES.get(cause['kind'], cause['kind'])}: {_subject(cause, quoted)} {what}"
    return f"{line} ({'; '.join(about)})" if about else line


def reason_text(reason: Reason) -> str:
    """Why a task was built although a run before had its hash. That of a newer deployment as it is."""
    return _REASONS.get(reason, reason)


def code_span(name: str) -> str:
    """A name in Markdown. Backticks would end the span, and a bar the cell of a table."""
    shown = printable(name).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown.strip() else "` `"


def _subject(cause: CauseJson, quoted: _Quote) -> str:
    more, name = cause["more"], quoted(cause["subject"])
    match cause["kind"]:
        case Kind.ENV_MODE:
            return "environment mode"
        case Kind.TASK_ENV_MODE:
            return f"environment mode of {quoted(cause['task'] or '')}"
        case Kind.FRAMEWORK:
            return "framework inference"
        case Kind.ENGINES:
            return "engines in package.json"
        case Kind.GLOBAL_EXTERNAL:
            return "dependencies of the root package"
        case Kind.GLOBAL_INTERNAL:
            return "workspace packages that the root package.json depends on"
        case Kind.EXTERNAL if any(hint["hint"] == Hint.EVERY_PACKAGE for hint in cause["hints"]):
            return f"external dependencies of all {more + 1} packages"
        case Kind.EXTERNAL:
            package = name if cause["subject"] else "the package"
            return f"external dependencies of {package}{f' and {more} more' if more else ''}"
        case Kind.DEFINITION:
            return f"{name} of {quoted(cause['task'] or '')} in turbo.json"
        case Kind.ARGUMENTS:
            return "arguments after --"
        case Kind.MOVED:
            return f"the folder of {name}"
        case Kind.EDGE:
            return "dependencies between tasks"
        case Kind.VALUE:
            return f"perhaps the value of {name}{f' or {more} more' if more else ''}"
        case Kind.UNKNOWN:
            return "something that turbo hashes and does not report"
    return f"{name} and {more} more" if more else name


def _reached(cause: CauseJson) -> int:
    return cause["directCount"] + cause["below"]


def _cost(cause: CauseJson) -> str:
    time = f", {human_duration(cause['buildMs'])}" if cause["buildMs"] else ""
    reached = _reached(cause)
    alone = f" ({cause['alone']} only because of this)" if cause["alone"] < reached else ""
    class_ = f" [{cause['class']}]" if cause["class"] else ""
    return f"{_tasks(reached)}{time}{alone}{class_}"


def _reach(cause: CauseJson, quoted: _Quote) -> str:
    """The tasks that have the cause of their own, and how many depend on them."""
    names = ", ".join(map(quoted, cause["direct"][:_SHOWN_NAMES]))
    names += " ..." if cause["directCount"] > _SHOWN_NAMES else ""
    return names + (f"; then {cause['below']} that depend on them" if cause["below"] else "")


def _headline(shown: ComparisonJson, quoted: _Quote) -> str:
    run = shown["baseline"]
    place = [f"run {quoted(run['id'][:8])}" if run["id"] else "a run"]
    place += [f"of {quoted(run['branch'])}"] if run["branch"] else []
    place += [f"at {quoted(run['sha'][:8])}"] if run["sha"] else []
    if about := [*_CHOSEN.get(run["chosen"] or "", ()), *_started(run)]:
        place.append(f"({', '.join(about)})")
    common, changed = shown["tasks"] - shown["newCount"], shown["changed"]
    if not changed:
        return f"Compared {_tasks(common)} with {' '.join(place)}: {NOTHING}"
    restored = shown["restored"]
    nevertheless = f" ({restored} of them restored nevertheless)" if restored else ""
    return (
        f"Compared {_tasks(common)} with {' '.join(place)}: {common - changed} with the same hash, "
        f"{changed} with another{nevertheless}."
    )


def _started(baseline: BaselineJson) -> Iterator[str]:
    """Of a run that the deployment has chosen. The person who names a file knows it."""
    if baseline["chosen"] and baseline["startedAt"] is not None:
        yield f"{from_ms(baseline['startedAt']):%Y-%m-%d %H:%M} UTC"


def _left_out(shown: ComparisonJson) -> Iterator[str]:
    more = len(shown["causes"]) - _SHOWN_CAUSES
    if not shown["complete"]:
        yield f"and more than {more} more causes"
    elif more > 0:
        yield f"and {more} more cause{'' if more == 1 else 's'}"


def _others(shown: ComparisonJson, quoted: _Quote) -> Iterator[str]:
    """Tasks that have no cause, and notes."""
    for tasks, count, about in (
        (shown["new"], shown["newCount"], "new: {} that the baseline does not have"),
        (shown["gone"], shown["goneCount"], "gone: {} that only the baseline has"),
    ):
        if count:
            yield f"{about.format(_tasks(count))}: {_first(tasks, count, quoted)}"
    yield from _same_hash(shown, quoted)
    for note in shown["notes"]:
        if note["note"] in _NOTES:
            line = _NOTES[note["note"]].format(quoted(note["subject"] or ""))
            names = _first(note["tasks"], note["count"], quoted)
            yield f"note: {line}{': ' if names else ''}{names}"


def _same_hash(shown: ComparisonJson, quoted: _Quote) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for one in shown["sameHash"]:
        groups.setdefault(_reason(one), []).append(one["task"])
    for reason, tasks in groups.items():
        names = _first(tasks, len(tasks), quoted)
        yield f"same hash, not restored: {_tasks(len(tasks))}{reason}: {names}"
    if more := shown["sameHashCount"] - len(shown["sameHash"]):
        yield f"same hash, not restored: {_tasks(more)} more"


def _reason(one: SameHashJson) -> str:
    reason = one["reason"]
    if reason is None:
        return " with the hash of the baseline"
    text = reason_text(reason)
    if reason == Reason.NOT_ASKED and Evidence.UPLOADED in one["evidence"]:
        text = "the run did not ask the cache (forced)"
    for evidence, why in _REFUSALS.items():
        if reason == Reason.REFUSED and evidence in one["evidence"]:
            text += f" ({why})"
    if reason == Reason.UNKNOWN and one["evidence"]:
        text += f" ({', '.join(one['evidence'])})"
    day = f" on {from_ms(one['at']):%Y-%m-%d}" if one["at"] is not None else ""
    is_sure = one["certain"] or reason == Reason.UNKNOWN
    return f", {'' if is_sure else 'probably '}{text}{day}"


def _first(names: Sequence[str], count: int, quoted: _Quote) -> str:
    """The first of `count` names."""
    more = count - len(names[:_SHOWN_NAMES])
    named = ", ".join(map(quoted, names[:_SHOWN_NAMES]))
    return f"{named} and {more} more" if more > 0 else named


def _some(values: Sequence[str], quoted: _Quote) -> str:
    """The first values. The JSON does not say how many there are if its list is full."""
    if len(values) < MAX_NAMES:
        return _first(values, len(values), quoted)
    return f"{', '.join(map(quoted, values[:_SHOWN_NAMES]))} and more"


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"
