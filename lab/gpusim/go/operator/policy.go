package operator

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// State is the ClusterPolicy's .status.state and why it is so.
type State struct {
	State   string // ready or notReady
	Reason  string
	Message string
}

// Judge says whether all operands run on all nodes that they are meant for. `nodes` holds the
// labels of every node. As the real operator, it is ready when there is no GPU node to wait for.
func Judge(nodes []map[string]string, operands []*appsv1.DaemonSet) State {
	gpuNodes, nfd := 0, false
	for _, labels := range nodes {
		if IsGPUNode(labels) {
			gpuNodes++
		}
		nfd = nfd || HasNFDLabels(labels)
	}
	if !nfd {
		return State{"ready", "NFDLabelsMissing", "No NFD labels found, polling for new nodes"}
	}
	if gpuNodes == 0 {
		return State{"ready", "NoGPUNodes", "No GPU node found, watching for new nodes"}
	}
	var waiting []string
	for _, operand := range operands {
		if why := unfinished(nodes, operand); why != "" {
			waiting = append(waiting, operand.Name+" ("+why+")")
		}
	}
	if len(waiting) > 0 {
		return State{"notReady", "OperandNotReady", "waiting for " + strings.Join(waiting, ", ")}
	}
	return State{"ready", "Reconciled", fmt.Sprintf("operands run on %d GPU nodes", gpuNodes)}
}

// unfinished says what is missing before an operand is rolled out, "" for nothing.
func unfinished(nodes []map[string]string, operand *appsv1.DaemonSet) string {
	var selected int32
	for _, labels := range nodes {
		if matches(operand.Spec.Template.Spec.NodeSelector, labels) {
			selected++
		}
	}
	status := operand.Status
	switch {
	case status.ObservedGeneration < operand.Generation:
		return "not seen by its controller"
	case status.DesiredNumberScheduled < selected:
		return fmt.Sprintf("meant for %d nodes, scheduled on %d", selected,
			status.DesiredNumberScheduled)
	case status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d updated", status.UpdatedNumberScheduled,
			status.DesiredNumberScheduled)
	case status.NumberAvailable < status.DesiredNumberScheduled:
		return fmt.Sprintf("%d of %d available", status.NumberAvailable,
			status.DesiredNumberScheduled)
	}
	return ""
}
