"""The administrative client of the `python3-gearman` library: its answers, as one line of JSON.

Called with `host port command [argument ...]`, where the command is a method of GearmanAdminClient.
"""

import json
import sys

import python3_gearman


def main() -> None:
    host, port, command, *arguments = sys.argv[1:]
    admin = python3_gearman.GearmanAdminClient([f"{host}:{port}"])
    print(json.dumps(getattr(admin, command)(*arguments)))


main()
