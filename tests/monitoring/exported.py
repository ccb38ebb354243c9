"""The files as an operator gets them, and the machines they are for."""

from recovery.app import files
from recovery.inventory import read_profile
from recovery.monitoring import limits_of, rendered


def machines():
    read = (read_profile(*files.find_profile(name)) for name in files.profile_names())
    return [limits_of(p.name, p.match, p.expectations) for p in read]


def export(folder):
    for name, text in rendered(machines()).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
