"""Arguments that are results of other jobs of the workflow: the worker fetches them before the task runs."""

from typing import Any

from geartrain.app import node_arguments
from geartrain.app.codecs import Codec
from geartrain.app.context import TaskJob
from geartrain.app.envelope import Envelope
from geartrain.app.task import Task
from geartrain.errors import ArgumentsError, CodecError, JobFailedError


async def fetch(task: Task[Any, Any], job: TaskJob, envelope: Envelope, codec: Codec) -> None:
    """Put the results of parents among the arguments of an envelope; a JobFailedError is the result of a failed one.

    ArgumentsError if a result is not kept any more: no other attempt would find it.
    """
    if envelope.place is None:
        raise ArgumentsError("the payload has results of other jobs, but no place in a workflow")
    places = node_arguments.places_in(envelope.results)
    decode = codec.decoder(Any)
    values: dict[int, Any] = {}
    for place, result in zip(places, await job.parent_results(envelope.place, places), strict=True):
        try:
            values[place] = result if isinstance(result, JobFailedError) else decode(result)
        except CodecError as error:
            raise ArgumentsError(
                f"the result of job {place} of the workflow, an argument of {task.name}: {error}"
            ) from error
    try:
        envelope.args, envelope.kwargs = node_arguments.put_in(envelope.args, envelope.kwargs, envelope.results, values)
    except (IndexError, KeyError, TypeError) as error:
        raise ArgumentsError(f"the payload has results of other jobs where no argument is: {error}") from error
