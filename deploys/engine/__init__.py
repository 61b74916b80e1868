"""What makes one command per host possible; imports nothing else of deploys/."""
