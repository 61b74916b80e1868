"""A site as a whole: its inventory and settings drafted, loaded and checked."""
