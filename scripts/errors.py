"""Errors that a user can act on: one message that says where, what, what was expected and what to do."""


class LakehouseError(Exception):
    """A problem that the user can mend; shown without a traceback."""


class ResourceError(LakehouseError):
    """The disk is full, or Spark has ended for want of memory: this process can do nothing more."""
