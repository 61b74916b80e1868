"""Repairing GPU nodes by themselves: when, which, in which steps, and when not.

Pure judgements. What was seen of a cluster goes in, the next step of each node comes out.
"""

# variable of the deploy that repairs: the file descriptor for the steps that it takes
STEPS = "GPUBOOT_STEPS"
