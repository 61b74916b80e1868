"""Files that gpuboot owns as a whole."""
