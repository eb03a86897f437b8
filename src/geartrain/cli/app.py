"""The verbs of `geartrain`, put together."""

import typer

from geartrain.cli import (
    bench,
    compact,
    cron,
    doctor,
    dump,
    exits,
    jobs,
    load,
    serve,
    show,
    status,
    steer,
    submit,
    tail,
    top,
    version,
    work,
    workers,
)

app = typer.Typer(
    name="geartrain",
    help="One durable job server that speaks several protocols over one engine.",
    no_args_is_help=True,
    epilog=exits.EPILOG,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve", epilog=serve.EPILOG)(serve.command())
app.command("submit", epilog=submit.EPILOG)(submit.submit)
app.command("work", epilog=work.EPILOG)(work.work)
app.command("status", epilog=status.EPILOG)(status.status)
app.command("workers", epilog=workers.EPILOG)(workers.workers)
app.command("jobs", epilog=jobs.EPILOG)(jobs.jobs)
app.command("show", epilog=show.EPILOG)(show.show)
for verb in steer.VERBS:
    app.command(verb.name, epilog=steer.epilog(verb))(steer.command(verb))
app.add_typer(cron.app)
app.command("top", epilog=top.EPILOG)(top.top)
app.command("tail", epilog=tail.EPILOG)(tail.tail)
app.command("bench", epilog=bench.EPILOG)(bench.bench)
app.command("dump", epilog=dump.EPILOG)(dump.dump)
app.command("load", epilog=load.EPILOG)(load.load)
app.command("doctor", epilog=doctor.EPILOG)(doctor.doctor)
app.command("compact", epilog=compact.EPILOG)(compact.compact)
app.command("version")(version.version)


@app.command("gearmand", add_help_option=False)
def gearmand() -> None:
    """Run the server with gearmand's command line: `geartrain gearmand --help`."""
    raise AssertionError("main() hands this verb to cli/gearmand.py before typer sees it")


def run() -> int:
    """Follow the command line. Wrong usage ends here, with exit code 2; errors of ours go to the caller."""
    app()
    return 0
