// Package operator is the lab's SIMULATED stand-in for NVIDIA's GPU operator: it labels GPU nodes,
// says in the ClusterPolicy whether the operands run, and validates nodes. What the real operator
// deploys from the ClusterPolicy, the lab's chart deploys itself.
package operator

import (
	"maps"
	"strings"
)

const (
	presentLabel  = "nvidia.com/gpu.present"
	deployPrefix  = "nvidia.com/gpu.deploy."
	operandsLabel = deployPrefix + "operands"
	migCapable    = "nvidia.com/mig.capable"
	migConfig     = "nvidia.com/mig.config"
	migDisabled   = "all-disabled"
	productLabel  = "nvidia.com/gpu.product"
	nfdPrefix     = "feature.node.kubernetes.io/"
)

// What Node Feature Discovery says of a node with an NVIDIA device on its PCI bus.
var pciLabels = []string{
	nfdPrefix + "pci-10de.present", nfdPrefix + "pci-0302_10de.present",
	nfdPrefix + "pci-0300_10de.present",
}

// The operands that get a label of their own on each GPU node.
var operands = []string{
	"driver", "container-toolkit", "device-plugin", "gpu-feature-discovery", "dcgm",
	"dcgm-exporter", "node-status-exporter", "operator-validator", "client",
}

// IsGPUNode says whether Node Feature Discovery found a GPU.
func IsGPUNode(labels map[string]string) bool {
	for _, label := range pciLabels {
		if labels[label] == "true" {
			return true
		}
	}
	return false
}

// HasNFDLabels says whether Node Feature Discovery has labelled the node at all.
func HasNFDLabels(labels map[string]string) bool {
	for label := range labels {
		if strings.HasPrefix(label, nfdPrefix) {
			return true
		}
	}
	return false
}

// LabelChanges are the labels to set (or, nil, to remove) on a node that has `labels`. What an
// administrator set to "false" stays, and the operands label "false" takes all operands away.
func LabelChanges(labels map[string]string) map[string]*string {
	wanted := wantedLabels(labels)
	changes := map[string]*string{}
	for label, value := range wanted {
		if current, set := labels[label]; !set || label == presentLabel && current != value {
			changes[label] = &value
		}
	}
	for label := range labels {
		managed := label == presentLabel ||
			strings.HasPrefix(label, deployPrefix) && label != operandsLabel
		if _, keep := wanted[label]; managed && !keep {
			changes[label] = nil
		}
	}
	return changes
}

func wantedLabels(labels map[string]string) map[string]string {
	wanted := map[string]string{}
	if !IsGPUNode(labels) {
		return wanted
	}
	wanted[presentLabel] = "true"
	if labels[operandsLabel] == "false" {
		return wanted
	}
	for _, operand := range operands {
		wanted[deployPrefix+operand] = "true"
	}
	if isMIGCapable(labels) {
		wanted[deployPrefix+"mig-manager"] = "true"
	}
	return wanted
}

// isMIGCapable goes by GPU feature discovery's label, and before there is one by the product.
func isMIGCapable(labels map[string]string) bool {
	if capable, set := labels[migCapable]; set {
		return capable == "true"
	}
	product := strings.ToLower(labels[productLabel])
	return strings.Contains(product, "h100") || strings.Contains(product, "a100") ||
		strings.Contains(product, "a30")
}

// MIGConfig is the layout that the operator gives a node that has none, "" for nothing: what was
// divided by hand is undone by it. Only with its MIG manager (the real operator v26.7.0,
// controllers/nodelabeling_controller.go:306).
func MIGConfig(labels map[string]string, manager bool, byDefault string) string {
	_, set := labels[migConfig]
	if !manager || set || !IsGPUNode(labels) || !isMIGCapable(labels) || byDefault != migDisabled {
		return ""
	}
	return migDisabled
}

// matches says whether a node with `labels`, after its changes, is one that `selector` selects.
func matches(selector, labels map[string]string) bool {
	after := maps.Clone(labels)
	if after == nil {
		after = map[string]string{}
	}
	for label, value := range LabelChanges(labels) {
		if value == nil {
			delete(after, label)
		} else {
			after[label] = *value
		}
	}
	for label, value := range selector {
		if after[label] != value {
			return false
		}
	}
	return true
}
