// sim-kube-state-metrics is the lab's SIMULATED stand-in for kube-state-metrics.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"gpuboot/lab/gpusim/kubestate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	options, err := kubestate.Parse(arguments, os.Stderr)
	if err != nil {
		return err
	}
	slog.Info(kubestate.Notice)
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	collector := kubestate.NewCollector(client, options)
	go collector.Run(ctx)
	failed := make(chan error, 2)
	serve := func(host string, port int, pages http.Handler) {
		failed <- http.ListenAndServe(net.JoinHostPort(host, strconv.Itoa(port)), pages)
	}
	go serve(options.Host, options.Port, collector.Metrics())
	go serve(options.TelemetryHost, options.TelemetryPort, collector.Telemetry())
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
