"""Apps and tasks: typed functions that workers run as durable jobs, with retries, schedules and middleware."""

from geartrain.app.app import App
from geartrain.app.call import Call
from geartrain.app.codecs import Codec, PickleCodec, register_codec
from geartrain.app.context import Running, current_task
from geartrain.app.dependencies import Depends
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.middleware import Middleware, Proceed
from geartrain.app.retry import GiveUp, Retry
from geartrain.app.task import Task
from geartrain.backoff import Backoff

__all__ = [
    "App",
    "Backoff",
    "Call",
    "Codec",
    "Depends",
    "GiveUp",
    "Middleware",
    "PickleCodec",
    "Proceed",
    "Retry",
    "Running",
    "SyncTaskHandle",
    "Task",
    "TaskHandle",
    "current_task",
    "register_codec",
]
