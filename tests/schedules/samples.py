"""A schedule for tests, with all that needs quoting in it."""

from recovery.model.schedule import Schedule


def a_schedule(**changes):
    values = {
        "name": "night",
        "about": "recover: quick preflight of c, 95% ready",
        "argv": ("/bin/echo", "preflight", "in ven/tory.yaml", "-e", 'ready=95% $HOME "x"'),
        "folder": "/tmp",
        "cron": "0 5 * * *",
        "jitter_s": 900,
        "limit_s": 1800,
        "environment": {"PATH": "/usr/bin:/bin", "RECOVER_STATE": "/var/lib/a b"},
    }
    return Schedule(**{**values, **changes})
