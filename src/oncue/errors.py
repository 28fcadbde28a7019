"""Every error that Oncue raises on purpose. Each says what happened, to what, and what to do now.

OncueError
├── ConfigError        oncue.toml, an ONCUE_* variable or a flag is wrong
├── TaskFileError      a task file is wrong: names the file, the place and the remedy
│   └── TriggerError   a schedule cannot be read, or can never fire
├── InvalidEvent       an event is not a CloudEvent, or too old, or too large
├── NotFound           no such task, run, dead letter or requeue
├── Conflict           the thing is in a state that does not allow it
├── SchemaError        the store's schema is older or newer than this Oncue
├── StoreUnavailable   the store cannot be reached now; trying again may help
└── AdapterError       something of others' failed
    ├── ResolveError   the entities could not be read
    └── TargetError    a target is not known, or wrongly described
"""


class OncueError(Exception):
    """The root: catch it to catch all of Oncue's own."""


class ConfigError(OncueError):
    """The configuration is wrong; the message names the setting and the remedy."""


class TaskFileError(OncueError):
    """A task file is wrong; the message names the file, the place in it and the remedy."""


class TriggerError(TaskFileError, ValueError):
    """A schedule cannot be read, or can never fire; the message names the field and the remedy."""


class InvalidEvent(OncueError):
    """An event cannot be taken; the message names the attribute and the remedy."""


class NotFound(OncueError):
    """Nothing goes by that name; the message lists what is known."""


class Conflict(OncueError):
    """The thing is in a state that does not allow this; the message says which, and what does."""


class SchemaError(OncueError):
    """The store's schema does not fit this version of Oncue; the message says which command mends it."""


class StoreUnavailable(OncueError):
    """The store cannot be reached now. Processes stay up and try again."""


class AdapterError(OncueError):
    """Something that belongs to others failed; the message carries its words."""


class ResolveError(AdapterError):
    """The entities of a run could not be read; the message names the source and carries its words."""


class TargetError(AdapterError):
    """A target cannot be used; the message names the broker or URL and the remedy."""
