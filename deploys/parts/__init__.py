"""What hosts and the cluster consist of: a folder for each concern, its facts and operations."""
