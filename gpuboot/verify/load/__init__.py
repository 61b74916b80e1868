"""Keeps free GPUs busy, so that their metrics move: `gpuboot load`."""
