package kubestate

import (
	"fmt"
	"net/http"
)

const textFormat = "text/plain; version=0.0.4; charset=utf-8"

// Metrics serves the cluster's state, as upstream on its first port.
func (c *Collector) Metrics() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /metrics", func(writer http.ResponseWriter, _ *http.Request) {
		if !c.Synced() { // half a state would look like GPUs that are gone
			http.Error(writer, "the cluster has not been seen yet", http.StatusServiceUnavailable)
			return
		}
		writer.Header().Set("Content-Type", textFormat)
		_, _ = writer.Write([]byte(c.Text()))
	})
	for _, path := range []string{"GET /healthz", "GET /livez"} {
		pages.HandleFunc(path, func(writer http.ResponseWriter, _ *http.Request) {
			_, _ = writer.Write([]byte("OK"))
		})
	}
	pages.HandleFunc("GET /{$}", notice("/metrics", "/healthz", "/livez"))
	return pages
}

// Telemetry serves what the stand-in says of itself, as upstream on its second port.
func (c *Collector) Telemetry() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /metrics", func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", textFormat)
		_, _ = fmt.Fprintf(writer, "# %s\n# HELP kube_state_metrics_build_info A metric with a constant '1' value.\n", Notice)
		_, _ = fmt.Fprintf(writer, "# TYPE kube_state_metrics_build_info gauge\nkube_state_metrics_build_info{version=\"simulated\"} 1\n")
	})
	pages.HandleFunc("GET /readyz", func(writer http.ResponseWriter, _ *http.Request) {
		if !c.Synced() {
			http.Error(writer, "the cluster has not been seen yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = writer.Write([]byte("OK"))
	})
	pages.HandleFunc("GET /{$}", notice("/metrics", "/readyz"))
	return pages
}

func notice(paths ...string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(writer, "%s\n%v\n", Notice, paths)
	}
}
