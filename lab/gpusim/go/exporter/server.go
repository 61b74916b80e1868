package exporter

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Settings are the options of the real exporter that mean something here.
type Settings struct {
	CountersFile string
	ReadCounters func() (Counters, error)
	Interval     time.Duration
	Selected     map[int]bool // GPU indices, nil for all
	Kubernetes   bool
	PodSocket    string
	Resources    []string
	Metadata     *Metadata // nil: pods' labels and UIDs are not wanted
	View         View
}

// Exporter samples at an interval and answers scrapes from the last sample.
type Exporter struct {
	settings Settings
	lib      nvml.Interface
	events   *Events
	mutex    sync.Mutex
	counters Counters
	trends   Trends
	gpus     []GPU
}

// New reads the counters for the first time; any error in them is returned.
func New(settings Settings, lib nvml.Interface) (*Exporter, error) {
	counters, err := settings.ReadCounters()
	if err != nil {
		return nil, err
	}
	warnOfMissing(counters)
	exporter := &Exporter{settings: settings, lib: lib, events: NewEvents(), counters: counters}
	exporter.sample()
	return exporter, nil
}

func (e *Exporter) sample() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	now := Sample(e.lib, e.counters, e.settings.Selected, &e.trends)
	for at, gpu := range now {
		if at == 0 || now[at-1].UUID != gpu.UUID { // instances of a GPU share its clocks
			e.events.AddClocks(gpu.UUID, gpu.Clocks, time.Now())
		}
	}
	e.gpus = WithLost(now, e.gpus)
}

// Run samples until the context ends, and reads the counters again on a signal and when their
// file has changed. Counters that cannot be read leave the old ones in force.
func (e *Exporter) Run(ctx context.Context, reload <-chan os.Signal) {
	go e.events.WatchXIDs(e.lib)
	ticker := time.NewTicker(e.settings.Interval)
	defer ticker.Stop()
	changed := time.NewTicker(5 * time.Second)
	defer changed.Stop()
	stamp := modified(e.settings.CountersFile)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.sample()
		case <-reload:
			e.reload()
		case <-changed.C:
			if now := modified(e.settings.CountersFile); now != stamp {
				stamp = now
				e.reload()
			}
		}
	}
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (e *Exporter) reload() {
	counters, err := e.settings.ReadCounters()
	if err != nil {
		slog.Error("Failed to reload the counters; the old ones stay in force", "error", err)
		return
	}
	e.mutex.Lock()
	e.counters = counters
	e.mutex.Unlock()
	e.events.Recreate()
	warnOfMissing(counters)
	slog.Info("Counters reloaded", "metrics", len(counters.Metrics))
	e.sample()
}

// Metrics answers a scrape: the values of the last sample, with the pods that hold the GPUs now.
func (e *Exporter) Metrics(writer http.ResponseWriter, request *http.Request) {
	view := e.settings.View
	view.Now = time.Now()
	if e.settings.Kubernetes {
		view.Pods = e.holders(request.Context())
	}
	e.mutex.Lock()
	counters, gpus := e.counters, e.gpus
	e.mutex.Unlock()
	var body bytes.Buffer
	Render(&body, counters, gpus, e.events, view)
	writer.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = writer.Write(body.Bytes())
}

// Without the kubelet there are no pods; without the API server the pods have no labels of theirs.
func (e *Exporter) holders(ctx context.Context) Holders {
	pods, err := Pods(ctx, e.settings.PodSocket, e.settings.Resources)
	if err != nil {
		slog.Warn("Failed to get pod mappings", "error", err)
		return nil
	}
	if e.settings.Metadata != nil {
		if err := e.settings.Metadata.Add(ctx, pods); err != nil {
			slog.Warn("Failed to get pod metadata", "error", err)
		}
	}
	return pods
}

// warnOfMissing says which of DCGM's fields this stand-in does not have.
func warnOfMissing(counters Counters) {
	for _, counter := range counters.Metrics {
		if !simulated(counter) {
			slog.Warn("This field is not simulated and will be missing", "field", counter.Name)
		}
	}
}

func simulated(counter Counter) bool {
	_, read := readers[counter.ID]
	return read || ownMetrics[counter.Name] || counter.ID == xidErrorsField ||
		isEventCounter(counter)
}

// isEventCounter is of DCGM's counters: without a reader no fault raises it, and it stays 0.
func isEventCounter(counter Counter) bool {
	return counter.Type == "counter" && counter.ID != 0 && counter.ID != xidErrorsField
}

// Handler serves /metrics, /health and a page that names them.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", e.Metrics)
	mux.HandleFunc("/health", func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte("OK"))
	})
	mux.HandleFunc("/{$}", func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte("<html><head><title>GPU Exporter (simulated)</title></head>" +
			"<body><h1>GPU Exporter (simulated)</h1><p><a href=\"./metrics\">Metrics</a></p>" +
			"<p><a href=\"./health\">Health</a></p></body></html>"))
	})
	return mux
}
