"""The machines themselves: operating systems, GPU models, packages, downloads, MIG and sharing."""
