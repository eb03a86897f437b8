"""The administrative client of the `aiogear` library: its answer to one command, as a line of JSON.

Called with `host port command [argument ...]`, where the command is a method of aiogear.Admin.
"""

import asyncio
import json
import sys

import aiogear


async def main() -> None:
    host, port, command, *arguments = sys.argv[1:]
    loop = asyncio.get_running_loop()
    _, admin = await loop.create_connection(lambda: aiogear.Admin(loop), host, int(port))
    print(json.dumps(await getattr(admin, command)(*arguments)))
    admin.close()


asyncio.run(main())
