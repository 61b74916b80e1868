// sim-gpu-operator is the lab's SIMULATED stand-in for NVIDIA's GPU operator and its validator.
//
//	sim-gpu-operator [flags]    the controller
//	sim-gpu-operator validate   one validation, as its environment says
//	sim-gpu-operator wait FILE  until the file exists
//	sim-gpu-operator idle       until it is stopped; takes the validations' files away
//	sim-gpu-operator mig        the MIG manager, as its environment says
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gpuboot/lab/gpusim/operator"
)

const validations = "/run/nvidia/validations"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	command := ""
	if len(arguments) > 0 {
		command = arguments[0]
	}
	output := cmp.Or(os.Getenv("OUTPUT_DIR"), validations)
	switch {
	case command == "validate" && len(arguments) == 1:
		return validate(ctx, output)
	case command == "idle" && len(arguments) == 1:
		return operator.Idle(ctx, output)
	case command == "mig" && len(arguments) == 1:
		return divide(ctx)
	case command == "wait" && len(arguments) == 2:
		return operator.WaitForFile(ctx, arguments[1])
	}
	return control(ctx, arguments)
}

func validate(ctx context.Context, output string) error {
	return operator.Validator{
		Component: os.Getenv("COMPONENT"),
		OutputDir: output,
		NodeName:  os.Getenv("NODE_NAME"),
		Wait:      os.Getenv("WITH_WAIT") == "true",
		Client:    client,
	}.Run(ctx)
}

// The real MIG manager's environment.
func divide(ctx context.Context) error {
	slog.Info("MIG manager SIMULATED by the gpuboot lab")
	api, err := client()
	if err != nil {
		return err
	}
	services, err := operator.HostClients(os.Getenv("GPU_CLIENTS_FILE"))
	if err != nil {
		return err
	}
	layouts := func() (operator.Layouts, error) {
		if path := os.Getenv("CONFIG_FILE"); path != "" {
			return operator.ReadLayouts(path)
		}
		return operator.Generated(ctx, operator.OnHost)
	}
	return operator.MIGManager{
		Client:    api,
		NodeName:  os.Getenv("NODE_NAME"),
		Namespace: os.Getenv("DEFAULT_GPU_CLIENTS_NAMESPACE"),
		Layouts:   layouts,
		Services:  services,
		Settle:    operator.Settle,
		Host:      operator.OnHost,
		Units:     operator.HostUnits,
	}.Run(ctx)
}

func client() (dynamic.Interface, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// The real operator's flags; those about logging and leader election are accepted only.
func control(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("sim-gpu-operator", flag.ContinueOnError)
	metricsAddress := flags.String("metrics-bind-address", ":8080", "address of /metrics")
	probeAddress := flags.String("health-probe-bind-address", ":8081", "address of the probes")
	flags.Bool("leader-elect", false, "ignored: there is one")
	flags.Duration("leader-lease-renew-deadline", 0, "ignored")
	flags.Bool("zap-devel", false, "ignored")
	for _, name := range []string{"zap-time-encoding", "zap-log-level", "zap-encoder", "zap-stacktrace-level"} {
		flags.String(name, "", "ignored")
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown command: %v", flags.Args())
	}
	slog.Info("GPU operator SIMULATED by the gpuboot lab")
	api, err := client()
	if err != nil {
		return err
	}
	controller := &operator.Controller{
		Client:    api,
		Namespace: cmp.Or(os.Getenv("OPERATOR_NAMESPACE"), "gpu-operator"),
		Metrics:   &operator.Metrics{},
		Pass:      operator.Pass,
	}
	return serve(ctx, controller, *metricsAddress, *probeAddress)
}

func serve(ctx context.Context, controller *operator.Controller, metrics, probes string) error {
	failed := make(chan error, 3)
	probe := http.NewServeMux()
	probe.HandleFunc("/healthz", func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = writer.Write([]byte("ok"))
	})
	probe.HandleFunc("/readyz", func(writer http.ResponseWriter, _ *http.Request) {
		if !controller.Synced() {
			http.Error(writer, "the cluster has not been seen yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = writer.Write([]byte("ok"))
	})
	page := http.NewServeMux()
	page.Handle("/metrics", controller.Metrics)
	go func() { failed <- http.ListenAndServe(probes, probe) }()
	go func() { failed <- http.ListenAndServe(metrics, page) }()
	go func() { failed <- controller.Run(ctx) }()
	err := <-failed
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
