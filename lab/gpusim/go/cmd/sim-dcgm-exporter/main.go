// sim-dcgm-exporter is the lab's SIMULATED stand-in for NVIDIA's dcgm-exporter.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"gpuboot/lab/gpusim/exporter"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(arguments []string) error {
	values, err := exporter.ParseOptions(arguments, os.Getenv)
	if err != nil {
		return err
	}
	if err := setLogger(values); err != nil {
		return err
	}
	if remote := exporter.RemoteEngine(arguments, os.Getenv); remote != "" {
		if err := holdOn(remote); err != nil {
			return err
		}
	}
	slog.Info("Starting dcgm-exporter SIMULATED by the gpuboot lab: it reads NVML, not DCGM",
		"Version", "4.6.1-4.8.4-simulated")
	settings, err := readSettings(values)
	if err != nil {
		return err
	}
	lib := nvml.New()
	if result := lib.Init(); result != nvml.SUCCESS {
		return fmt.Errorf("cannot initialize NVML: %s", result.Error())
	}
	defer lib.Shutdown()
	server, err := exporter.New(settings, lib)
	if err != nil {
		return err
	}
	return serve(values, server)
}

// holdOn connects to a host engine, of which it reads nothing: the values are NVML's here too. As the
// real one, the exporter does not start without the engine, and ends with it.
func holdOn(engine string) error {
	connection, err := net.DialTimeout("tcp", engine, 10*time.Second)
	if err != nil {
		return fmt.Errorf("error connecting to nv-hostengine: %w", err)
	}
	slog.Info("Attempting to connect to remote hostengine at " + engine)
	go func() {
		_, err := io.Copy(io.Discard, connection)
		slog.Error("Host engine connection invalid/disconnected", "error", err)
		os.Exit(1)
	}()
	return nil
}

func setLogger(values exporter.Values) error {
	level := &slog.HandlerOptions{}
	if values.On("debug") {
		level.Level = slog.LevelDebug
	}
	switch values["log-format"] {
	case "text":
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, level)))
	case "json":
		slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, level)))
	default:
		return fmt.Errorf("invalid log-format parameter values: %s", values["log-format"])
	}
	return nil
}

func readSettings(values exporter.Values) (exporter.Settings, error) {
	var settings exporter.Settings
	var err error
	if settings.Interval, err = values.Milliseconds("collect-interval"); err != nil {
		return settings, err
	}
	if settings.View.XIDWindow, err = values.Milliseconds("xid-count-window-size"); err != nil {
		return settings, err
	}
	clockWindow := "clock-events-count-window-size"
	if settings.View.ClockWindow, err = values.Milliseconds(clockWindow); err != nil {
		return settings, err
	}
	if settings.Selected, err = values.Selected(); err != nil {
		return settings, err
	}
	settings.CountersFile = values["collectors"]
	settings.ReadCounters = func() (exporter.Counters, error) { return readCounters(values) }
	settings.Kubernetes = values.On("kubernetes")
	settings.PodSocket = values["pod-resources-kubelet-socket"]
	settings.Resources = strings.Split(values["nvidia-resource-names"], ",")
	if settings.Metadata, err = podMetadata(values); err != nil {
		return settings, err
	}
	settings.View.SharedGPUs = values.On("kubernetes-virtual-gpus")
	settings.View.PodUID = values.On("kubernetes-enable-pod-uid")
	settings.View.Hostname = values.Hostname()
	settings.View.OldNames = values.On("use-old-namespace")
	settings.View.ReplaceBlanks = values.On("replace-blanks-in-model-name")
	return settings, nil
}

func podMetadata(values exporter.Values) (*exporter.Metadata, error) {
	labels := values.On("kubernetes-enable-pod-labels")
	if !values.On("kubernetes") || !labels && !values.On("kubernetes-enable-pod-uid") {
		return nil, nil
	}
	patterns := exporter.SplitList(values["kubernetes-pod-label-allowlist-regex"])
	return exporter.NewMetadata(labels, patterns)
}

// The ConfigMap, if one is named, comes before the file; as in the real exporter, one that cannot
// be read is fatal.
func readCounters(values exporter.Values) (exporter.Counters, error) {
	if name := values["configmap-data"]; name != "none" {
		return exporter.ReadCountersConfigMap(name)
	}
	slog.Info("Falling back to metric file", "file", values["collectors"])
	return exporter.ReadCountersFile(values["collectors"])
}

func serve(values exporter.Values, server *exporter.Exporter) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	go server.Run(ctx, reload)
	readTimeout, err := time.ParseDuration(values["web-read-timeout"])
	if err != nil {
		return err
	}
	writeTimeout, err := time.ParseDuration(values["web-write-timeout"])
	if err != nil {
		return err
	}
	web := &http.Server{
		Addr:         values["address"],
		Handler:      server.Handler(),
		ReadTimeout:  readTimeout,
		WriteTimeout: writeTimeout,
	}
	failed := make(chan error, 1)
	addresses, systemdSocket, configFile := []string{web.Addr}, false, values["web-config-file"]
	go func() {
		failed <- toolkit.ListenAndServe(web, &toolkit.FlagConfig{
			WebListenAddresses: &addresses,
			WebSystemdSocket:   &systemdSocket,
			WebConfigFile:      &configFile,
		}, slog.Default())
	}()
	slog.Info("Starting webserver", "address", web.Addr)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return web.Shutdown(grace)
	}
}
