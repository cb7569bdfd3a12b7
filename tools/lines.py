"""Count the repository's lines: those by hand, and those that .gitattributes or a block of cog marks as generated."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"<<<cog [^\n]*>>>[^\n]*\n(.*?)^[^\n]*<<<end>>>", re.MULTILINE | re.DOTALL)


def _git(*arguments: str, stdin: str = "") -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, input=stdin, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\0")


def main() -> None:
    names = [name for name in _git("ls-files", "-z") if name and not (ROOT / name).is_symlink()]
    attributes = _git(
        "check-attr", "-z", "--stdin", "linguist-generated", stdin="\0".join(names) + "\0"
    )
    marked = {
        name
        for name, state in zip(attributes[::3], attributes[2::3], strict=False)
        if state == "set"
    }
    by_hand = generated = 0
    for name in names:
        content = (ROOT / name).read_bytes()
        lines = content.count(b"\n")
        if name in marked:
            generated += lines
            continue
        blocks = sum(block.count("\n") for block in _BLOCK.findall(content.decode()))
        by_hand += lines - blocks
        generated += blocks
    print(f"{by_hand:,} lines by hand, {generated:,} generated, {len(names):,} files")


if __name__ == "__main__":
    main()
