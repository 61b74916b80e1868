package exporter

import (
	"strings"
	"testing"
	"time"
)

func TestWindowedCountsForgetAndHaveAZeroRow(t *testing.T) {
	list := counters(t, "DCGM_EXP_XID_ERRORS_COUNT, gauge, c", "DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, c")
	gpus := Sample(library("GPU-a"), list, nil, &Trends{})
	events, now := NewEvents(), time.Now()
	events.AddXID("GPU-a", 31, now.Add(-time.Hour))
	events.AddClocks("GPU-a", 0x48, now)
	events.AddClocks("GPU-a", 0x40, now)
	minute := View{XIDWindow: time.Minute, ClockWindow: time.Minute, Now: now}
	contains(t, render(list, gpus, events, minute),
		`window_size_in_ms="60000"} 0`, `clock_event="hw_thermal"} 2`, `clock_event="hw_slowdown"} 1`)
}

func TestTotalsAreBornAtOneAndBeginAnewWithTheCounters(t *testing.T) {
	list := counters(t, "DCGM_EXP_XID_ERRORS_TOTAL, counter, c",
		"DCGM_EXP_CLOCK_EVENTS_TOTAL, counter, c", "DCGM_FI_DEV_XID_ERRORS, gauge, last",
		"DCGM_EXP_GPU_HEALTH_STATUS, gauge, health")
	gpus := Sample(library("GPU-a"), list, nil, &Trends{})
	events, now := NewEvents(), time.Now()
	events.AddClocks("GPU-a", 0x01, now)
	if got := render(list, gpus, events, View{}); strings.Contains(got, "_TOTAL{") {
		t.Errorf("a total before anything happened, or of a reason that was there from the start:\n%s", got)
	}
	events.AddXID("GPU-a", 31, now)
	events.AddXID("GPU-a", 95, now)
	for _, reasons := range []uint64{0x48, 0x48, 0x00, 0x48} {
		events.AddClocks("GPU-a", reasons, now)
	}
	contains(t, render(list, gpus, events, View{}), `xid="31"} 1`, `xid="95"} 1`,
		`clock_event="hw_thermal"} 2`, `clock_event="hw_slowdown"} 2`)
	events.Recreate()
	got := render(list, gpus, events, View{})
	if strings.Contains(got, "_TOTAL{") {
		t.Errorf("totals outlived the counters file:\n%s", got)
	}
	contains(t, got, `err_msg="Uncontained ECC error"} 95`,
		`health_error_code="DCGM_FR_UNCONTAINED_ERROR",health_watch="ALL"} 20`)
}

func TestHealthTakesTheWorseOfStateAndHistory(t *testing.T) {
	for _, check := range []struct {
		watch  string
		health Health
		xids   map[int]bool
		want   int
	}{
		{"ALL", nil, nil, pass},
		{"ALL", nil, map[int]bool{31: true}, pass},
		{"MEM", nil, map[int]bool{31: true}, warn},
		{"ALL", nil, map[int]bool{94: true}, warn},
		{"ALL", nil, map[int]bool{94: true, 119: true}, fail},
		{"MEM", Health{"MEM": {fail, "DCGM_FR_FAULTY_MEMORY"}}, map[int]bool{63: true}, fail},
		{"PCIE", Health{"MEM": {fail, "x"}}, map[int]bool{79: true}, pass},
	} {
		if got := check.health.verdict(check.watch, check.xids); got.Status != check.want {
			t.Errorf("%s with %v and XIDs %v: %v", check.watch, check.health, check.xids, got)
		}
	}
}

func TestTrendsLookBackOneMinute(t *testing.T) {
	var trends Trends
	start := time.Now()
	for _, step := range []struct {
		seconds     int
		value, want uint64
	}{
		{0, 1000, 0}, {30, 1010, 10}, {60, 1010, 10}, {89, 1010, 10}, {90, 1010, 0}, {120, 1300, 290},
		{130, 0, 0}, {140, 5, 5},
	} {
		at := start.Add(time.Duration(step.seconds) * time.Second)
		if got := trends.Gain("GPU-a", "x", step.value, at); got != step.want {
			t.Errorf("after %d s: gained %d, not %d", step.seconds, got, step.want)
		}
		if got := trends.Gain("GPU-b", "x", 7, at); got != 0 {
			t.Errorf("another GPU gained %d", got)
		}
	}
}
