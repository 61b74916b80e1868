package exporter

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HelpSuffix ends each metric's help text, so that the numbers say what they are.
const HelpSuffix = " (simulated)"

// DCGM_FI_DEV_XID_ERRORS: the last XID, which comes as an event and is not read.
const xidErrorsField = 230

// View says how to print: the exporter's options that matter, and who holds which GPU.
type View struct {
	Hostname      string // empty: no such label
	OldNames      bool   // the labels of exporter 1.x
	ReplaceBlanks bool   // in model names, by dashes
	XIDWindow     time.Duration
	ClockWindow   time.Duration
	Pods          map[string]Pod // by GPU UUID
	Now           time.Time
}

type label struct{ name, value string }

type sample struct {
	labels []label // beyond those of the GPU
	value  string
}

// Render prints the metrics of a sample in Prometheus' text format, in the counters' order.
func Render(out io.Writer, counters Counters, gpus []GPU, events *Events, view View) {
	for _, counter := range counters.Metrics {
		var lines strings.Builder
		for _, gpu := range gpus {
			for _, sample := range samples(counter, gpu, events, view) {
				writeSample(&lines, counter.Name, gpu, sample, view)
			}
		}
		if lines.Len() == 0 {
			continue
		}
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s", counter.Name,
			escapeHelp(counter.Help)+HelpSuffix, counter.Name, counter.Type, lines.String())
	}
}

func samples(counter Counter, gpu GPU, events *Events, view View) []sample {
	switch counter.Name {
	case xidTotal:
		return counted(events.Total(xidTotal, gpu.UUID), "xid", nil)
	case clockTotal:
		return counted(events.Total(clockTotal, gpu.UUID), "clock_event", nil)
	case xidCount:
		since := view.Now.Add(-view.XIDWindow)
		return windowed(events.Within(xidCount, gpu.UUID, since), "xid", view.XIDWindow)
	case clockCount:
		since := view.Now.Add(-view.ClockWindow)
		counts := events.Within(clockCount, gpu.UUID, since)
		return windowed(counts, "clock_event", view.ClockWindow)
	case healthState:
		return healthSamples(gpu, events)
	}
	if counter.ID == xidErrorsField {
		xid := events.LastXID(gpu.UUID)
		return []sample{{
			labels: []label{{"err_code", itoa(xid)}, {"err_msg", xidMessage(xid)}},
			value:  itoa(xid),
		}}
	}
	if value, ok := gpu.Values[counter.Name]; ok {
		return []sample{{value: value}}
	}
	return nil
}

func counted(counts map[string]int, name string, more []label) []sample {
	var found []sample
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		labels := append(slices.Clone(more), label{name, what})
		found = append(found, sample{labels, itoa(counts[what])})
	}
	return found
}

// A window without events has one sample of 0 that names no event.
func windowed(counts map[string]int, name string, window time.Duration) []sample {
	size := []label{{"window_size_in_ms", itoa(int(window.Milliseconds()))}}
	if len(counts) == 0 {
		return []sample{{size, "0"}}
	}
	return counted(counts, name, size)
}

func healthSamples(gpu GPU, events *Events) []sample {
	xids := events.Total(xidTotal, gpu.UUID)
	var found []sample
	for _, watch := range healthWatches {
		verdict := gpu.Health.verdict(watch, xids)
		labels := []label{{"health_error_code", verdict.Code}, {"health_watch", watch}}
		found = append(found, sample{labels, itoa(verdict.Status)})
	}
	return found
}

func writeSample(out *strings.Builder, name string, gpu GPU, sample sample, view View) {
	uuid, model := "UUID", gpu.Model
	if view.OldNames {
		uuid = "uuid"
	}
	if view.ReplaceBlanks {
		model = strings.Join(strings.Fields(model), "-")
	}
	labels := []label{
		{"gpu", itoa(gpu.Index)}, {uuid, gpu.UUID}, {"pci_bus_id", gpu.BusID},
		{"device", "nvidia" + itoa(gpu.Index)}, {"modelName", model},
	}
	if view.Hostname != "" {
		labels = append(labels, label{"hostname", view.Hostname})
	}
	for _, field := range slices.Sorted(maps.Keys(gpu.Labels)) {
		labels = append(labels, label{field, gpu.Labels[field]})
	}
	labels = append(labels, sample.labels...)
	if pod, held := view.Pods[gpu.UUID]; held {
		labels = append(labels, pod.labels(view.OldNames)...)
	}
	out.WriteString(name)
	for i, label := range labels {
		out.WriteByte("{,"[min(i, 1)])
		out.WriteString(label.name + `="` + escapeLabel(label.value) + `"`)
	}
	out.WriteString("} " + sample.value + "\n")
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func escapeLabel(value string) string { return labelEscapes.Replace(value) }

var helpEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

func escapeHelp(value string) string { return helpEscapes.Replace(value) }

func itoa(number int) string { return strconv.Itoa(number) }

// Messages of the XIDs that the lab injects; others are "Unknown Error".
var xidMessages = map[int]string{
	0: "No Error", 13: "Graphics Engine Exception", 31: "GPU memory page fault",
	43: "GPU stopped processing", 45: "Preemptive cleanup, due to previous errors",
	48: "Double Bit ECC Error", 63: "ECC page retirement or row remapping recording event",
	64: "ECC page retirement or row remapper recording failure", 74: "NVLINK Error",
	79: "GPU has fallen off the bus", 94: "Contained ECC error", 95: "Uncontained ECC error",
	119: "GSP RPC timeout", 120: "GSP error",
}

func xidMessage(xid int) string {
	if message, known := xidMessages[xid]; known {
		return message
	}
	return "Unknown Error"
}
