"""Finds the causes of symptoms in what hosts and the cluster tell, by a table of causes."""

# variables of the deploy that reads a site: the file descriptor for lines of progress, and when it
# must have ended, in seconds since 1970
PROGRESS = "GPUBOOT_PROGRESS"
UNTIL = "GPUBOOT_UNTIL"
