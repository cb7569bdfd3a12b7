"""The output of `larder why` for people: lines of text, and Markdown for a pull request or a job summary."""

from collections.abc import Callable, Iterable, Iterator

from larder.misses.causes import ADVICE, Cause, Kind
from larder.misses.comparison import Comparison
from larder.misses.hints import Hint
from larder_cli.output import human_duration, printable

_SHOWN_CAUSES = 8
_SHOWN_NAMES = 4

TITLES = {
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
}
"""Where the name of the kind is not what people say."""

HINTS = {
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
_NOTES = {
    "not_cached": "cache is false: it is never cached",
    "turbo_version": "turbo {}: both versions give the same hashes",
    "not_hashed": "{} differs: turbo does not hash it",
    "passed_variable": "the value of {} differs: turbo does not hash the values of passThroughEnv",
}

NOTHING = "nothing changed: every hash is that of the baseline"
_COMPARED = (
    "inputs, variables, external packages, settings in turbo.json, arguments and dependencies"
)
_PAGE = "docs/why.md"

_Quote = Callable[[str], str]
"""How a name is shown: as it is, or as a code span of Markdown."""


def text(comparison: Comparison) -> Iterator[str]:
    """The lines for people."""
    yield _headline(comparison, printable)
    for number, cause in enumerate(comparison.causes[:_SHOWN_CAUSES], 1):
        yield ""
        yield f"{number}. {cause_line(cause)} -> {_cost(cause)}"
        yield f"     {_reach(cause, printable)}"
        if cause.kind is Kind.UNKNOWN:
            yield f"     Compared: {_COMPARED}."
        yield f"     {ADVICE[cause.advice]} ({_PAGE}#{cause.advice})"
    others = [*_left_out(comparison), *_others(comparison, printable)]
    if others:
        yield ""
        yield from others


def markdown(comparison: Comparison) -> Iterator[str]:
    """The lines of a job summary or a comment. Names are in code spans, so that they are no markup and no mentions."""
    yield f"**Larder**: {_headline(comparison, code_span)}"
    shown = comparison.causes[:_SHOWN_CAUSES]
    if shown:
        yield from ("", "| Cause | Tasks | Build time | Class |", "|---|---:|---:|---|")
    for cause in shown:
        time = human_duration(cause.build_ms) if cause.build_ms else ""
        line = cause_line(cause, code_span)
        yield f"| {line} | {cause.tasks} | {time} | {cause.class_ or ''} |"
    if shown:
        yield ""
        yield "<details><summary>Tasks and advice</summary>"
        yield ""
        for cause in shown:
            yield f"- {cause_line(cause, code_span)}: {_reach(cause, code_span)}. {ADVICE[cause.advice]}"
        yield ""
        yield "</details>"
    for line in (*_left_out(comparison), *_others(comparison, code_span)):
        yield ""
        yield line


def cause_line(cause: Cause, quoted: _Quote = printable) -> str:
    """The cause in one line, such as `file: packages/lib/src/a.js changed (not in git)`."""
    about = [HINTS[hint].format(_some(values, quoted)) for hint, values in cause.hints]
    if cause.commit:
        about.append(f"commit {quoted(cause.commit)}")
    # What changed says more than that it changed.
    what = _some(cause.values, quoted) or cause.how
    line = f"{TITLES.get(cause.kind, cause.kind)}: {_subject(cause, quoted)} {what}"
    return f"{line} ({'; '.join(about)})" if about else line


def code_span(name: str) -> str:
    """A name in Markdown. Backticks would end the span, and a bar the cell of a table."""
    shown = printable(name).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown.strip() else "` `"


def _subject(cause: Cause, quoted: _Quote) -> str:
    more, name = len(cause.more), quoted(cause.subject)
    match cause.kind:
        case Kind.ENV_MODE:
            return "environment mode"
        case Kind.TASK_ENV_MODE:
            return f"environment mode of {quoted(cause.task)}"
        case Kind.FRAMEWORK:
            return "framework inference"
        case Kind.ENGINES:
            return "engines in package.json"
        case Kind.GLOBAL_EXTERNAL:
            return "dependencies of the root package"
        case Kind.GLOBAL_INTERNAL:
            return "workspace packages that the root package.json depends on"
        case Kind.EXTERNAL if more:
            return f"external dependencies of all {more + 1} packages"
        case Kind.EXTERNAL:
            return f"external dependencies of {name if cause.subject else 'the package'}"
        case Kind.DEFINITION:
            return f"{name} of {quoted(cause.task)} in turbo.json"
        case Kind.ARGUMENTS:
            return "arguments after --"
        case Kind.MOVED:
            return f"the folder of {name}"
        case Kind.EDGE:
            return "dependencies between tasks"
        case Kind.UNKNOWN:
            return "something that turbo hashes and does not report"
    return f"{name} and {more} more" if more else name


def _cost(cause: Cause) -> str:
    time = f", {human_duration(cause.build_ms)}" if cause.build_ms else ""
    alone = f" ({cause.alone} only because of this)" if cause.alone < cause.tasks else ""
    return f"{_tasks(cause.tasks)}{time}{alone}{f' [{cause.class_}]' if cause.class_ else ''}"


def _reach(cause: Cause, quoted: _Quote) -> str:
    """The tasks that have the cause of their own, and how many depend on them."""
    names = ", ".join(map(quoted, cause.direct[:_SHOWN_NAMES]))
    names += " ..." if len(cause.direct) > _SHOWN_NAMES else ""
    return names + (f"; then {len(cause.below)} that depend on them" if cause.below else "")


def _headline(comparison: Comparison, quoted: _Quote) -> str:
    run = comparison.base
    place = [f"run {quoted(run.id[:8])}" if run.id else "a run"]
    place += [f"of {quoted(run.branch)}"] if run.branch else []
    place += [f"at {quoted(run.sha[:8])}"] if run.sha else []
    common = len(comparison.run.tasks) - len(comparison.new)
    if not comparison.changed:
        return f"Compared {_tasks(common)} with {' '.join(place)}: {NOTHING}"
    restored = len(comparison.restored)
    nevertheless = f" ({restored} of them restored nevertheless)" if restored else ""
    return (
        f"Compared {_tasks(common)} with {' '.join(place)}: {common - len(comparison.changed)} with the same hash, "
        f"{len(comparison.changed)} with another{nevertheless}."
    )


def _left_out(comparison: Comparison) -> Iterator[str]:
    more = len(comparison.causes) - _SHOWN_CAUSES
    if more > 0:
        yield f"and {more} more cause{'' if more == 1 else 's'}"


def _others(comparison: Comparison, quoted: _Quote) -> Iterator[str]:
    """Tasks that have no cause, and notes."""
    for tasks, about in (
        (comparison.new, "new: {} that the baseline does not have"),
        (comparison.gone, "gone: {} that only the baseline has"),
        (comparison.same_hash, "same hash, not restored: {} with the hash of the baseline"),
    ):
        if tasks:
            yield f"{about.format(_tasks(len(tasks)))}: {_some(tasks, quoted)}"
    for note in comparison.notes:
        line = _NOTES[note.note].format(quoted(note.subject))
        yield f"note: {line}{': ' if note.tasks else ''}{_some(note.tasks, quoted)}"


def _some(values: Iterable[str], quoted: _Quote) -> str:
    """The first names."""
    first = [*values]
    more = len(first) - _SHOWN_NAMES
    named = ", ".join(map(quoted, first[:_SHOWN_NAMES]))
    return f"{named} and {more} more" if more > 0 else named


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"
