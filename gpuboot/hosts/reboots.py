"""How long a machine may take from its reboot to its answer.

Servers with much memory train and test it at each start: HGX machines with 2 TiB take 20 minutes
and more (NVIDIA/deepops#779, dell/omnia#4667).
"""

import re

SHORTEST_S = 900
_MEMORY = re.compile(r"MemTotal:\s+(\d+) kB")


def timeout_s(setting: int | None, meminfo: str) -> int:
    """Seconds to wait for a machine.

    + setting: `settings.driver.reboot_timeout_s`, which holds where a site has set it
    + meminfo: the machine's /proc/meminfo; "" where it could not be read
    """
    if setting is not None:
        return setting
    match = _MEMORY.search(meminfo)
    return SHORTEST_S + (int(match[1]) // 1024**2 if match else 0)
