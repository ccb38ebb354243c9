"""`recover serve`: the runs as a small web page, live and read-only."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import click

from recovery.cli.options import state_option

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST_TOKEN = 16


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8787, show_default=True, help="0 takes a free one.")
@click.option(
    "--token-env", metavar="NAME", help="Environment variable with the token that readers need."
)
@click.option("--token-file", metavar="FILE", help="A file with it.")
@click.option("--cert", metavar="FILE", help="TLS certificate (PEM); with --key.")
@click.option("--key", metavar="FILE", help="Its key.")
@state_option
def COMMAND(host: str, port: int, **options: Any) -> None:  # noqa: N802 - a constant of the shelf
    """Show the runs on a web page, live, until Ctrl-C. Nothing can be changed by it.

    Only this machine can read it unless --host says otherwise; then a token is needed (as password,
    under any name). From your desk: ssh -L 8787:127.0.0.1:8787 HEAD
    """
    from recovery.errors import InputError

    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InputError("the web page is not installed", remedy="pip install 'recover[serve]'")
    token = _token(options["token_env"], options["token_file"])
    if host not in LOOPBACK and not token:
        raise InputError(
            f"on {host} everybody could read it", remedy="give a token: --token-env or --token-file"
        )
    _serve(host, port, token, options)


def _token(variable: str | None, file: str | None) -> str:
    """The token; never an option of its own: command lines are seen by everybody."""
    from recovery.errors import InputError

    token, named = "", variable or file
    try:
        if variable:
            token = os.environ.get(variable, "")
        elif file:
            token = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}", remedy="check the path") from error
    if named and len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"the token in {named} has less than {SHORTEST_TOKEN} characters",
            remedy="make one: openssl rand -hex 16",
        )
    return token


def _serve(host: str, port: int, token: str, options: dict[str, Any]) -> None:
    from recovery.app.files import state_folder
    from recovery.app.serving import listening, run_server, source_of
    from recovery.web.site import site

    tls = (options["cert"], options["key"]) if options["cert"] and options["key"] else None
    app = site(source_of(state_folder(options["state"])), token=token)
    with listening("127.0.0.1" if host == "localhost" else host, port) as socket:
        shown = f"[{host}]" if ":" in host else host
        address = f"http{'s' if tls else ''}://{shown}:{socket.getsockname()[1]}/"
        click.echo(f"{address}  (Ctrl-C ends it)")
        if host not in LOOPBACK and tls is None:
            click.echo("warning: the token travels in the clear: use --cert and --key", err=True)
        run_server(app, socket, tls)
