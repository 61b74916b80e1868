"""What limits the work of GPUs, told from their counters: `gpuboot profile`.

`counters` makes means of five minutes from samples, `classes` puts a GPU into a class by ordered
rules, with the thresholds of the settings, `window` does so over a span of time, and `answer`
asks Prometheus for it all.
"""
