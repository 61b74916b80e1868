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
	SharedGPUs    bool // every series once for each pod that shares its GPU
	PodUID        bool
	Pods          Holders
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
				writeForHolders(&lines, counter.Name, gpu, sample, view)
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
	case p2pState:
		return peerSamples(gpu)
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
	xids := events.XIDs(gpu.UUID)
	var found []sample
	for _, watch := range healthWatches {
		verdict := gpu.Health.verdict(watch, xids)
		labels := []label{{"health_error_code", verdict.Code}, {"health_watch", watch}}
		found = append(found, sample{labels, itoa(verdict.Status)})
	}
	return found
}

var peerStates = []string{
	"OK", "ChipsetNotSupported", "GPUNotSupported", "TopologyNotSupported", "DisabledByRegKey",
	"NotSupported", "Unknown",
}

func peerSamples(gpu GPU) []sample {
	var found []sample
	for _, peer := range slices.Sorted(maps.Keys(gpu.Peers)) {
		status := gpu.Peers[peer]
		text := peerStates[min(status, len(peerStates)-1)]
		labels := []label{{"link_status", text}, {"peer_gpu", itoa(peer)}}
		found = append(found, sample{labels, itoa(status)})
	}
	return found
}

// The metrics that the real exporter splits by process when pods share a GPU. Nothing here runs on
// a simulated GPU, so each pod is given an equal part.
var splitByPod = []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"}

func writeForHolders(out *strings.Builder, name string, gpu GPU, sample sample, view View) {
	pods := gpu.holders(view.Pods)
	switch {
	case len(pods) == 0:
		writeSample(out, name, gpu, sample, nil, view)
	case !view.SharedGPUs:
		// A whole GPU has one holder; of several the last is shown, as by the real exporter.
		writeSample(out, name, gpu, sample, &pods[len(pods)-1], view)
	default:
		if slices.Contains(splitByPod, name) {
			writeSample(out, name, gpu, sample, nil, view)
			sample.value = part(sample.value, len(pods))
		}
		for i := range pods {
			writeSample(out, name, gpu, sample, &pods[i], view)
		}
	}
}

func part(value string, pods int) string {
	number, err := strconv.Atoi(value)
	if err != nil {
		return value
	}
	return itoa(number / pods)
}

func writeSample(
	out *strings.Builder, name string, gpu GPU, sample sample, pod *Pod, view View,
) {
	labels := append(gpuLabels(gpu, view), sample.labels...)
	if pod != nil {
		labels = append(labels, pod.labels(view)...)
		if !view.SharedGPUs { // a limit of the real exporter
			labels = addPodLabels(labels, pod.Labels)
		}
	}
	out.WriteString(name)
	for i, label := range labels {
		out.WriteByte("{,"[min(i, 1)])
		out.WriteString(label.name + `="` + escapeLabel(label.value) + `"`)
	}
	out.WriteString("} " + sample.value + "\n")
}

func gpuLabels(gpu GPU, view View) []label {
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
	if gpu.Instance != nil {
		labels = append(labels, label{"GPU_I_PROFILE", gpu.Instance.Profile},
			label{"GPU_I_ID", itoa(gpu.Instance.ID)})
	}
	if view.Hostname != "" {
		labels = append(labels, label{"hostname", view.Hostname})
	}
	for _, field := range slices.Sorted(maps.Keys(gpu.Labels)) {
		labels = append(labels, label{field, gpu.Labels[field]})
	}
	return labels
}

// A pod's label gives way to one of the exporter's own of the same name.
func addPodLabels(labels []label, more map[string]string) []label {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		taken := func(own label) bool { return own.name == name }
		if !slices.ContainsFunc(labels, taken) {
			labels = append(labels, label{name, more[name]})
		}
	}
	return labels
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func escapeLabel(value string) string { return labelEscapes.Replace(value) }

var helpEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

func escapeHelp(value string) string { return helpEscapes.Replace(value) }

func itoa(number int) string { return strconv.Itoa(number) }
