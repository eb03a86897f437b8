"""The order of the test files in a parallel run: the longest first, so that none of them is left for the end."""

# By the processor time that they take.
LONGEST = (
    "tests/integration/test_build.py",
    "tests/chaos/test_chaos.py",
    "tests/chaos/test_failover.py",
    "tests/crash/test_kill.py",
    "tests/crash/test_kept_after_kill.py",
    "tests/crash/test_outbox_after_kill.py",
    "tests/property/test_engine_machine.py",
    "tests/acceptance/test_maintenance.py",
    "tests/acceptance/cli/test_job_verbs.py",
    "tests/acceptance/test_serve.py",
    "tests/acceptance/cli/test_work.py",
    "tests/crash/test_faulty_disk.py",
    "tests/integration/campaigns/test_soak.py",
    "tests/integration/campaigns/test_fuzz.py",
    "tests/browser/test_usability.py",
)


def rank(node_id: str) -> int:
    """The place of a test's file."""
    file = node_id.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
