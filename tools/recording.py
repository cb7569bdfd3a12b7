"""Record `make demo` as the picture of the README, docs/demo.svg. Run by `make recording`.

asciinema records the terminal, and svg-term draws it. Pauses are cut, and the end stays for some seconds.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_RECORD = ("uv", "tool", "run", "asciinema==2.4.0", "rec", "--quiet", "--cols=92", "--rows=30")
_DRAW = ("npx", "--yes", "svg-term-cli@2.1.1", "--window", "--no-cursor", "--height=30")
_LONGEST_PAUSE_S = 1.5
_END_S = 5.0


def shortened(recording: str) -> str:
    """A recording of asciinema without long pauses."""
    head, *lines = recording.splitlines()
    at = before = 0.0
    events = []
    for line in lines:
        time, kind, text = json.loads(line)
        at += min(time - before, _LONGEST_PAUSE_S)
        before = time
        events.append(json.dumps([round(at, 3), kind, text]))
    events.append(json.dumps([round(at + _END_S, 3), "o", " "]))
    return "\n".join([head, *events]) + "\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "demo.cast")
        subprocess.run([*_RECORD, "--command=make demo", file], cwd=ROOT, check=True)
        file.write_text(shortened(file.read_text()))
        subprocess.run([*_DRAW, "--in", file, "--out", ROOT / "docs" / "demo.svg"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
