"""Steps of kubeadm: init, join, changes, upgrades, reset."""
