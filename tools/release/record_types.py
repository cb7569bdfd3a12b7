"""Record the resources of this release by type, for `larder plan` of later ones. Run by `make record-release`."""

from tools.generate.text import json_lines
from tools.release.changes_since import types_of
from tools.release.package import ROOT, plain_template, version

if __name__ == "__main__":
    path = ROOT / "tests" / "upgrades" / "types" / f"{version()}.json"
    path.write_text(json_lines(types_of(plain_template(ROOT / "template.yaml")), depth=1))
