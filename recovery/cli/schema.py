"""`recover schema`: JSON Schema, for editors."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument("what", type=click.Choice(["runbook", "inventory", "report"]))
def COMMAND(what: str) -> None:  # noqa: N802 - a constant of the shelf
    """Print the JSON Schema (draft 7) of a runbook, an inventory, or a JSON report.

    \b
    recover schema runbook > runbooks/runbook.schema.json
    then begin a runbook with: # yaml-language-server: $schema=runbook.schema.json
    """  # noqa: D301 - the mark is a character for click
    from recovery import app
    from recovery.inventory import inventory_schema
    from recovery.plan import runbook_schema
    from recovery.reports.json import report_schema

    schemas = {
        "runbook": lambda: runbook_schema(app.verbs()),
        "inventory": inventory_schema,
        "report": report_schema,
    }
    click.echo(json.dumps(schemas[what](), indent=1))
