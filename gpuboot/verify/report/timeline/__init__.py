"""Where the time of a run went: per stage, phase and host, as tables and as a picture."""
