"""The machines themselves: operating systems, GPU models, packages, downloads, and preflight."""
