package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	hostRoot    = "/host"
	retryPeriod = 5 * time.Second
	pluginTries = 30
)

// Where the status of a host's driver lies and what it says, as the real validator writes it.
const driverReady = `IS_HOST_DRIVER=true
NVIDIA_DRIVER_ROOT=/
DRIVER_ROOT_CTR_PATH=/host
NVIDIA_DEV_ROOT=/
DEV_ROOT_CTR_PATH=/host
`

// Validator checks one layer of a node and leaves a file that says that the layer works.
type Validator struct {
	Component string // driver, toolkit or plugin
	OutputDir string
	NodeName  string
	Wait      bool // try until it works
	Client    func() (dynamic.Interface, error)
}

// Run validates. Without Wait the first failure is returned, but for the device plugin, whose
// resources may take a while to be known to the API server.
func (v Validator) Run(ctx context.Context) error {
	file := filepath.Join(v.OutputDir, v.Component+"-ready")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	check, content, tries := v.check()
	if check == nil {
		return fmt.Errorf("invalid component: %q", v.Component)
	}
	for try := 1; ; try++ {
		err := check(ctx)
		if err == nil {
			slog.Info("validated (simulated operator)", "component", v.Component)
			return os.WriteFile(file, []byte(content), 0o644)
		}
		if !v.Wait && try >= tries {
			return err
		}
		slog.Info("not yet", "component", v.Component, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPeriod):
		}
	}
}

func (v Validator) check() (check func(context.Context) error, content string, tries int) {
	switch v.Component {
	case "driver":
		return hostDriver, driverReady, 1
	case "toolkit":
		return injectedDriver, "", 1
	case "plugin":
		return v.resources, "", pluginTries
	}
	return nil, "", 0
}

// hostDriver runs the host's own nvidia-smi in the host's root.
func hostDriver(ctx context.Context) error {
	command := exec.CommandContext(ctx, "/usr/bin/nvidia-smi")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: hostRoot}
	command.Dir = "/"
	return runQuietly(command)
}

// injectedDriver runs the nvidia-smi that the container runtime put into this container.
func injectedDriver(ctx context.Context) error {
	return runQuietly(exec.CommandContext(ctx, "nvidia-smi"))
}

func runQuietly(command *exec.Cmd) error {
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("nvidia-smi: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// resources asks whether the node has GPUs to give to pods.
func (v Validator) resources(ctx context.Context) error {
	client, err := v.Client()
	if err != nil {
		return err
	}
	node, err := client.Resource(nodeResource).Get(ctx, v.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	capacity, _, err := unstructured.NestedStringMap(node.Object, "status", "capacity")
	if err != nil {
		return err
	}
	if !offersGPUs(capacity) {
		return fmt.Errorf("GPU resources are not discovered by the device plugin on %s", v.NodeName)
	}
	return nil
}

func offersGPUs(capacity map[string]string) bool {
	for name, text := range capacity {
		if !strings.HasPrefix(name, "nvidia.com/gpu") && !strings.HasPrefix(name, "nvidia.com/mig-") {
			continue
		}
		if amount, err := resource.ParseQuantity(text); err == nil && amount.Sign() > 0 {
			return true
		}
	}
	return false
}

// WaitForFile returns when the file exists, or when the context ends.
func WaitForFile(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		slog.Info("waiting", "file", path)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryPeriod):
		}
	}
}

// Idle waits for the context to end and then takes the status files away.
func Idle(ctx context.Context, outputDir string) error {
	<-ctx.Done()
	files, err := filepath.Glob(filepath.Join(outputDir, "*-ready"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
