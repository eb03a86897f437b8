"""Geartrain: a task of an app, submitted durably; five hundred at once in the worker."""

import submitting

from geartrain.app import App

app = App("bench", submitting.URL)


@app.task
async def empty() -> None:
    """Nothing."""


async def submit() -> None:
    async def batch(size: int) -> None:
        await app.submit_many(empty.bind() for _ in range(size))

    async with app:
        await submitting.report_async(batch, 20 * submitting.BATCH)


if submitting.ACTION == "submit":
    submitting.run(submit)
else:
    app.run(concurrency=500)
