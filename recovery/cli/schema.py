"""`recover schema`: JSON Schema, for editors."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument("what", type=click.Choice(["runbook", "inventory"]))
def COMMAND(what: str) -> None:  # noqa: N802 - a constant of the shelf
    r"""Print the JSON Schema (draft 7) of a runbook or an inventory.

    \b
    recover schema runbook > runbooks/runbook.schema.json
    then begin a runbook with: # yaml-language-server: $schema=runbook.schema.json
    """
    from recovery import app
    from recovery.inventory import inventory_schema
    from recovery.plan import runbook_schema

    schema = runbook_schema(app.verbs()) if what == "runbook" else inventory_schema()
    click.echo(json.dumps(schema, indent=1))
