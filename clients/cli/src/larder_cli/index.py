"""`larder rebuild-index` and `larder sweep`: the index of stored artifacts."""

import time
from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import Record, print_record
from larder_cli.progress import counting

if TYPE_CHECKING:
    from larder.artifacts.rebuild_index import RebuildReport
    from larder.artifacts.sweep import SweepReport


def _rebuild_record(report: "RebuildReport", seconds: float) -> Record:
    return {
        "objects": report.objects,
        "indexed": report.indexed,
        "already_current": report.current,
        "expired_or_refused": report.expired,
        "replaced": report.replaced,
        "seconds": round(seconds, 1),
    }


def _sweep_record(report: "SweepReport") -> Record:
    return {
        "expired_artifacts": report.expired,
        "objects_deleted": report.objects_deleted,
        "uploads_published": report.uploads_published,
        "uploads_never_received": report.uploads_given_up,
        "removals_finished": report.removals,
        "totals_checked": report.totals_checked,
        "totals_to_check_again": report.totals_drifting,
        "totals_not_checked": report.totals_too_large,
        "totals_corrected": report.totals_corrected,
        "corrected_size_bytes": report.corrected_bytes,
        "corrected_artifacts": report.corrected_artifacts,
        "failed": report.failed,
        "finished": report.finished,
    }


@click.command(
    "rebuild-index",
    cls=TargetCommand,
    epilog=examples(
        "larder --stack larder rebuild-index", "larder --local .larder rebuild-index --json"
    ),
)
@json_option
def rebuild_index(as_json: bool) -> None:
    """Rebuild the index from the objects in the bucket.

    For each hash, the latest complete upload becomes the artifact, with the tag and duration stored in its object's
    metadata. You can run it twice, interrupt it, and run it while the cache serves requests. Quotas do not apply to
    artifacts that are already stored. At the end, it recounts the stored bytes of each team and user.
    """
    from larder.artifacts import rebuild_index

    began = time.monotonic()
    with counting("objects") as count:
        report = rebuild_index.rebuild_index(
            now=clock.now(), on_progress=lambda report: count(report.objects)
        )
    print_record(_rebuild_record(report, time.monotonic() - began), as_json=as_json)


@click.command("sweep", cls=TargetCommand, epilog=examples("larder --stack larder sweep"))
@json_option
def sweep(as_json: bool) -> None:
    """Run the hourly sweep now.

    It deletes expired artifacts, replaced objects, and uploads that were announced but never arrived.
    """
    from larder.artifacts import sweep
    from larder.why.origins import origins_of

    print_record(_sweep_record(sweep.sweep(now=clock.now(), origins=origins_of)), as_json=as_json)
