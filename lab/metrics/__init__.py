"""Stand-ins of what metrics-server needs beside itself: the approver of kubelets' certificates."""
