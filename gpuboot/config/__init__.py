"""What a run is told: inventory, settings and version lock. All mistakes in them are reported."""
