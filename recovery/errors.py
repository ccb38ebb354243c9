"""Every error of the project, with what to do about it.

    RecoveryError                 message, remedy, exit_code
    +-- InputError                2  what we were given is wrong; nothing was touched
    |   +-- DocumentError            YAML that cannot be read as we read it
    |   +-- InventoryError
    |   +-- SelectionError           a node expression
    |   +-- RunbookError
    |   +-- TemplateError            a Jinja2 template or expression
    +-- ParseError                   a node's output that cannot be read: becomes UNKNOWN
    +-- RegistryError             2  an extension that does not fit
    +-- StoreError                3  the journal or the evidence cannot be kept
    +-- SchedulerError            3  Slurm or Kubernetes does not answer
    +-- LockedError               4  another run holds the cluster
    +-- InterruptedRunError     130  the operator said stop

What goes wrong *on a node* is a verdict, not an exception.
"""


class RecoveryError(Exception):
    """An error that a person can act on: what, where, and the remedy."""

    exit_code = 2

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class InputError(RecoveryError):
    """What we were given is wrong; no node was touched."""


class DocumentError(InputError):
    """A YAML text that cannot be read, or reads differently in YAML 1.1 and 1.2."""


class InventoryError(InputError):
    """An inventory or a hardware profile that cannot be used."""


class SelectionError(InputError):
    """A node expression that names nothing, or nothing known."""


class RunbookError(InputError):
    """A runbook that cannot be carried out as written."""


class TemplateError(InputError):
    """A template or an expression that cannot be rendered safely."""


class ParseError(RecoveryError):
    """A node's output that cannot be read; the verdict is UNKNOWN."""


class RegistryError(RecoveryError):
    """An extension that does not fit, or a name that is not there."""


class StoreError(RecoveryError):
    """The journal or the evidence cannot be written or read."""

    exit_code = 3


class SchedulerError(RecoveryError):
    """The scheduler does not answer, or not in a way that can be read."""

    exit_code = 3


class LockedError(RecoveryError):
    """Another run holds the cluster."""

    exit_code = 4


class InterruptedRunError(RecoveryError):
    """The operator said stop; `finally` still runs."""

    exit_code = 130
