"""What others have put in force beside what a run sets."""
