"""The functions of the edge in the template, from the files of deploy/edge/, and the table of probes in docs/edge.md.

CloudFront takes code only from the template.
"""

from __future__ import annotations

from pathlib import Path

from larder_cli.edge.probes import PROBES
from tools.generate.options import prefixed
from tools.generate.text import table_row

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "edge"
USES_STORE = {"request"}
"""The functions that read the key-value store."""


def function(name: str) -> None:
    """The resource of the function whose code is in deploy/edge/<name>.js."""
    print(f"  Edge{name.capitalize()}:")
    print("    Type: AWS::CloudFront::Function")
    print("    Condition: HasEdge")
    print("    Properties:")
    print(f"      Name: {prefixed('${AWS::Region}-' + name)}")
    print("      AutoPublish: true")
    print("      FunctionConfig:")
    print(f'        Comment: "Larder: edge/{name}.js"')
    print("        Runtime: cloudfront-js-2.0")
    if name in USES_STORE:
        print("        KeyValueStoreAssociations: [{KeyValueStoreARN: !GetAtt EdgeKeys.Arn}]")
    code = (FOLDER / f"{name}.js").read_text()
    print(f"      FunctionCode: {'!Sub ' if '${' in code else ''}|")
    for line in code.splitlines():
        print(f"        {line}" if line else "")


def probes() -> None:
    """The probes of `larder edge enable`, in their order."""
    print(table_row("Probe", "What it shows"))
    print("|---|---|")
    for probe in PROBES:
        print(table_row(probe.id, probe.name))
