"""What every run needs: its settings and nodes, the state of all hosts, and its report."""
