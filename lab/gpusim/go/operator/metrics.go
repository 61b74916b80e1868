package operator

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Metrics are the numbers that the operator says of itself, under the real operator's names.
type Metrics struct {
	mutex       sync.Mutex
	gpuNodes    int
	nfdLabels   int
	status      int // 1: the ClusterPolicy is ready, 0: not
	total       int
	failed      int
	lastSuccess int64
}

// Reconciled records a run that ended with a state.
func (m *Metrics) Reconciled(nodes []map[string]string, state State) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.total++
	m.gpuNodes, m.nfdLabels, m.status = 0, 0, 0
	for _, labels := range nodes {
		if IsGPUNode(labels) {
			m.gpuNodes++
		}
		if HasNFDLabels(labels) {
			m.nfdLabels = 1
		}
	}
	if state.State == "ready" {
		m.status = 1
		m.lastSuccess = time.Now().Unix()
	}
}

// Failed records a run that ended with an error.
func (m *Metrics) Failed() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.total++
	m.failed++
	m.status = 0
}

// ServeHTTP prints the metrics in Prometheus' text format.
func (m *Metrics) ServeHTTP(writer http.ResponseWriter, _ *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	writer.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, metric := range []struct {
		name, kind, help string
		value            int64
	}{
		{"gpu_nodes_total", "gauge", "Nodes with GPUs", int64(m.gpuNodes)},
		{"reconciliation_status", "gauge", "1 success, 0 not ready, -1 no cluster policy, -2 error", int64(m.status)},
		{"reconciliation_total", "counter", "Reconciliations", int64(m.total)},
		{"reconciliation_failed_total", "counter", "Failed reconciliations", int64(m.failed)},
		{"reconciliation_last_success_ts_seconds", "gauge", "Time of the last ready state", m.lastSuccess},
		{"reconciliation_has_nfd_labels", "gauge", "1: nodes have NFD labels", int64(m.nfdLabels)},
		// The host's driver is not the operator's to upgrade, so these stay at 0, and OpenShift's
		// are there on every cluster.
		{"driver_auto_upgrade_enabled", "gauge", "1: drivers are upgraded", 0},
		{"nodes_upgrades_in_progress", "gauge", "Nodes being upgraded", 0},
		{"nodes_upgrades_done", "gauge", "Nodes that were upgraded", 0},
		{"nodes_upgrades_failed", "gauge", "Nodes whose upgrade failed", 0},
		{"nodes_upgrades_available", "gauge", "Nodes that can be upgraded", 0},
		{"nodes_upgrades_pending", "gauge", "Nodes that wait to be upgraded", 0},
		{"openshift_driver_toolkit_enabled", "gauge", "OpenShift only", 0},
		{"openshift_driver_toolkit_nfd_too_old", "gauge", "OpenShift only", 0},
		{"openshift_driver_toolkit_imagestream_missing", "gauge", "OpenShift only", 0},
		{"openshift_driver_toolkit_rhcos_tags_missing", "gauge", "OpenShift only", 0},
		{"openshift_driver_toolkit_imagestream_broken", "gauge", "OpenShift only", 0},
	} {
		name := "gpu_operator_" + metric.name
		fmt.Fprintf(writer, "# HELP %s %s (simulated)\n# TYPE %s %s\n%s %d\n",
			name, metric.help, name, metric.kind, name, metric.value)
	}
}
