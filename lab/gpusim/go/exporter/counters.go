// Package exporter is the lab's SIMULATED stand-in for NVIDIA's dcgm-exporter: the same options,
// the same counters file with the same rules, the same metric names and labels. It reads NVML
// instead of DCGM.
package exporter

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

// Counter is one line of the counters file. ID is DCGM's field, 0 for what the exporter computes.
type Counter struct {
	ID   dcgm.Short
	Name string
	Type string
	Help string
}

// Counters are the metrics to print, in the file's order, and the fields to add as labels.
type Counters struct {
	Metrics []Counter
	Labels  []Counter
}

// The metrics that the exporter makes itself (releases from 4.8.3 on).
const (
	xidTotal    = "DCGM_EXP_XID_ERRORS_TOTAL"
	xidCount    = "DCGM_EXP_XID_ERRORS_COUNT"
	clockTotal  = "DCGM_EXP_CLOCK_EVENTS_TOTAL"
	clockCount  = "DCGM_EXP_CLOCK_EVENTS_COUNT"
	healthState = "DCGM_EXP_GPU_HEALTH_STATUS"
	p2pState    = "DCGM_EXP_P2P_STATUS"
)

var ownMetrics = map[string]bool{
	xidTotal: true, xidCount: true, clockTotal: true, clockCount: true, healthState: true,
	p2pState: true,
}

var promTypes = map[string]bool{"gauge": true, "counter": true, "untyped": true, "label": true}

// Fields that release 4.8.4 refuses, and what it wants in their place.
var retired = map[dcgm.Short]string{
	200: "DCGM_FI_PROF_PCIE_TX_BYTES", 201: "DCGM_FI_PROF_PCIE_RX_BYTES",
}

// ReadCountersFile reads the counters file at path. See ParseCounters.
func ReadCountersFile(path string) (Counters, error) {
	file, err := os.Open(path)
	if err != nil {
		return Counters{}, err
	}
	defer file.Close()
	return ParseCounters(file)
}

// ParseCounters applies the real exporter's rules: lines of "field, type, help" with exactly three
// columns; an unknown field or type is an error, which ends the exporter.
func ParseCounters(text io.Reader) (Counters, error) {
	reader := csv.NewReader(text)
	reader.Comment = '#'
	records, err := reader.ReadAll()
	if err != nil {
		return Counters{}, err
	}
	var counters Counters
	for line, record := range records {
		counter, err := parseRecord(line, record)
		if err != nil {
			return Counters{}, err
		}
		if counter.Type == "label" {
			counters.Labels = append(counters.Labels, counter)
		} else {
			counters.Metrics = append(counters.Metrics, counter)
		}
	}
	return counters, nil
}

func parseRecord(line int, record []string) (Counter, error) {
	for i := range record {
		record[i] = strings.Trim(record[i], " ")
	}
	if len(record) != 3 {
		return Counter{}, fmt.Errorf("malformed CSV record; err: failed to parse line %d (`%v`), "+
			"expected 3 fields", line, record)
	}
	counter := Counter{Name: record[0], Type: record[1], Help: record[2]}
	id, known := dcgm.GetFieldID(counter.Name)
	if !known && !ownMetrics[counter.Name] {
		return Counter{}, fmt.Errorf(
			"could not find DCGM field; err: unknown ExporterCounter field '%s'", counter.Name)
	}
	if instead := retired[id]; known && instead != "" {
		return Counter{}, fmt.Errorf("the DCGM field '%s' is retired; use '%s'", counter.Name, instead)
	}
	if !promTypes[counter.Type] {
		return Counter{}, fmt.Errorf("could not find Prometheus metric type '%s'", counter.Type)
	}
	counter.ID = id
	return counter, nil
}
