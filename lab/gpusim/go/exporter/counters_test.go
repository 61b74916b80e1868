package exporter

import (
	"os"
	"strings"
	"testing"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"
)

func TestParseCountersAcceptsTheRealForms(t *testing.T) {
	counters, err := ParseCounters(strings.NewReader(`# a comment
DCGM_FI_DEV_GPU_TEMP,    gauge, GPU temperature (in C).
DCGM_FI_DEV_DEC_UTIL ,   gauge, a blank before the comma

DCGM_FI_DEV_GPU_UTIL_RATIO, gauge,"a name of DCGM 4.6, and a quoted comma"
DCGM_FI_DRIVER_VERSION, label, Driver version
DCGM_EXP_XID_ERRORS_TOTAL, counter, made by the exporter
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, counter := range counters.Metrics {
		names = append(names, counter.Name)
	}
	want := "DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_DEC_UTIL DCGM_FI_DEV_GPU_UTIL_RATIO " +
		"DCGM_EXP_XID_ERRORS_TOTAL"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("metrics %q, want %q", got, want)
	}
	if len(counters.Labels) != 1 || counters.Labels[0].Name != "DCGM_FI_DRIVER_VERSION" {
		t.Errorf("labels %v", counters.Labels)
	}
	if counters.Metrics[2].ID != 203 {
		t.Errorf("the new name of GPU_UTIL has id %d, want 203", counters.Metrics[2].ID)
	}
}

func TestParseCountersRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an invented field":          "DCGM_FI_DEV_SM_OCCUPANCY, gauge, no such field",
		"an unknown type":            "DCGM_FI_DEV_GPU_TEMP, meter, temperature",
		"an exporter's unknown type": "DCGM_EXP_XID_ERRORS_TOTAL, meter, total",
		"a retired field":            "DCGM_FI_DEV_PCIE_TX_THROUGHPUT, gauge, bytes",
		"two columns":                "DCGM_FI_DEV_GPU_TEMP, gauge",
		"a comma in the help":        "DCGM_FI_DEV_GPU_TEMP, gauge, hot, hotter",
		"lines of different lengths": "DCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_FI_DEV_FB_FREE, gauge",
	} {
		if counters, err := ParseCounters(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted as %v", name, counters)
		}
	}
}

func TestDefaultCountersAreAllSimulated(t *testing.T) {
	file, err := os.Open("../default-counters.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counters, err := ParseCounters(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(counters.Metrics) != 25 {
		t.Errorf("%d metrics, the real list has 25 (and one label)", len(counters.Metrics))
	}
	for _, counter := range counters.Metrics {
		if !simulated(counter) {
			t.Errorf("%s (%d) is not read", counter.Name, counter.ID)
		}
	}
}

func TestACounterWithoutReaderIsZero(t *testing.T) {
	for _, want := range []struct {
		id    int
		kind  string
		value string
		ok    bool
	}{{1402, "counter", "0", true}, {1402, "gauge", "", false}, {0, "counter", "", false}} {
		counter := Counter{ID: dcgm.Short(want.id), Type: want.kind}
		value, ok := read(nil, nil, counter)
		if ok != want.ok || ok && value != want.value {
			t.Errorf("%v is %q, %v", counter, value, ok)
		}
	}
}
