"""Errors that a user can act on: one message that says where, what, what was expected and what to do."""


class LakehouseError(Exception):
    """A problem that the user can mend; shown without a traceback."""

    status = 1  # the exit status of the command


class UsageError(LakehouseError):
    """The command was asked wrongly: its arguments or its environment have to change before it can do anything."""

    status = 2


class ResourceError(LakehouseError):
    """The disk is full, or Spark has ended for want of memory: this process can do nothing more."""
