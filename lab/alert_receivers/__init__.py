"""Where the lab's alerts arrive: stand-ins of PagerDuty, Slack, a smarthost, a dead-man switch.

SIMULATED: one process on the host takes messages as these services do, refuses what they refuse,
and writes each message as one line of JSON to alerts.jsonl in the lab's folder.
"""
