"""What GPUs were used for over time, and what follows: charging, planning, autoscaling."""
