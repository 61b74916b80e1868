package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	migState   = migConfig + ".state"
	migPaused  = "paused-for-mig-change"
	migPending = "pending"
	migSuccess = "success"
	migFailed  = "failed"
	podsGone   = 5 * time.Minute
	// Settle is how long the real one waits after it has stopped the kubelet.
	Settle = 30 * time.Second
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// What uses a node's GPUs: the operand's label, and the name that its pods have as `app`.
var migClients = [][2]string{
	{"device-plugin", "nvidia-device-plugin-daemonset"},
	{"gpu-feature-discovery", "gpu-feature-discovery"},
	{"dcgm-exporter", "nvidia-dcgm-exporter"},
	{"dcgm", "nvidia-dcgm"},
	{"nvsm", ""},
}

// MIGManager is the SIMULATED stand-in for NVIDIA's MIG manager: it divides a node's GPUs as the
// node's label asks, by the steps of the real one (mig-parted v0.15, pkg/mig/reconfigure).
//
// With a driver that the host has installed, as gpuboot's always is, these steps stop the host's
// own users of GPUs, and for a change of MIG mode the kubelet as well.
type MIGManager struct {
	Client    dynamic.Interface
	NodeName  string
	Namespace string // of the operands
	Layouts   func() (Layouts, error)
	Services  []string // of the host, that use GPUs
	Settle    time.Duration
	// Host runs a program in the host's root and returns what it prints.
	Host  func(ctx context.Context, command ...string) (string, error)
	Units func(ctx context.Context) (Units, error) // the host's services
}

// Run divides the GPUs whenever the label has another value, until the context ends.
func (m MIGManager) Run(ctx context.Context) error {
	last := ""
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		labels, err := m.labels(ctx)
		if err != nil {
			slog.Warn("node", "error", err)
			return false, nil
		}
		if name := labels[migConfig]; name != "" && name != last {
			last = name
			if err := m.reconfigure(ctx, name, labels); err != nil {
				slog.Error("MIG layout", "name", name, "error", err)
			}
		}
		return false, nil
	})
}

func (m MIGManager) reconfigure(ctx context.Context, name string, labels map[string]string) error {
	slog.Info("MIG layout (simulated MIG manager)", "name", name)
	units, err := m.Units(ctx)
	if err != nil {
		return err // the label's state stays as it was, as with the real one
	}
	defer units.Close()
	stopped, err := m.divide(ctx, name, labels, &division{host: m.Host}, units)
	state := migSuccess
	if err != nil {
		state = migFailed
	}
	if restart := m.restart(ctx, labels, units, stopped); restart != nil {
		return restart
	}
	if label := m.label(ctx, map[string]string{migState: state}); label != nil {
		return label
	}
	return err
}

// divide returns the host's services that are to be started afterwards.
func (m MIGManager) divide(
	ctx context.Context, name string, labels map[string]string, gpus *division, units Units,
) ([]string, error) {
	layouts, err := m.Layouts()
	if err != nil {
		return nil, err
	}
	if err := gpus.plan(ctx, layouts, name); err != nil || gpus.applied() {
		return nil, err
	}
	if err := m.label(ctx, map[string]string{migState: migPending}); err != nil {
		return nil, err
	}
	if err := m.label(ctx, clientLabels(labels, migPaused)); err != nil {
		return nil, err
	}
	if err := m.waitForPods(ctx); err != nil {
		return nil, err
	}
	services := slices.Clone(m.Services)
	if gpus.changesMode() {
		services = append(services, "kubelet.service")
	}
	stopped, err := stopUnits(ctx, units, services)
	if err != nil {
		return stopped, err
	}
	if gpus.changesMode() {
		time.Sleep(m.Settle)
	}
	if err := gpus.apply(ctx); err != nil {
		return stopped, err
	}
	return stopped, m.deletePods(ctx, "nvidia-operator-validator")
}

func (m MIGManager) restart(
	ctx context.Context, labels map[string]string, units Units, stopped []string,
) error {
	for _, service := range stopped {
		slog.Info("starting", "service", service)
		if err := units.Start(ctx, service); err != nil {
			return err
		}
	}
	return m.label(ctx, clientLabels(labels, "true"))
}

// clientLabels take the pods that use GPUs from the node, or let them come back. What somebody has
// set to "false" stays.
func clientLabels(labels map[string]string, value string) map[string]string {
	changes := map[string]string{}
	for _, client := range migClients {
		label := deployPrefix + client[0]
		changes[label] = value
		if labels[label] == "false" {
			changes[label] = "false"
		}
	}
	return changes
}

func (m MIGManager) labels(ctx context.Context) (map[string]string, error) {
	node, err := m.Client.Resource(nodeResource).Get(ctx, m.NodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return node.GetLabels(), nil
}

func (m MIGManager) label(ctx context.Context, labels map[string]string) error {
	return setLabels(ctx, m.Client, m.NodeName, labels)
}

func (m MIGManager) waitForPods(ctx context.Context) error {
	for _, client := range migClients {
		if client[1] == "" {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, time.Second, podsGone, true,
			func(ctx context.Context) (bool, error) {
				pods, err := m.pods(ctx, client[1])
				return len(pods) == 0, err
			})
		if err != nil {
			return fmt.Errorf("%s did not shut down: %w", client[0], err)
		}
	}
	return nil
}

func (m MIGManager) pods(ctx context.Context, app string) ([]unstructured.Unstructured, error) {
	found, err := m.Client.Resource(podResource).Namespace(m.Namespace).List(ctx,
		metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + m.NodeName, LabelSelector: "app=" + app,
		})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

func (m MIGManager) deletePods(ctx context.Context, app string) error {
	pods, err := m.pods(ctx, app)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		err := m.Client.Resource(podResource).Namespace(m.Namespace).Delete(
			ctx, pod.GetName(), metav1.DeleteOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// HostClients reads the services of the host that use GPUs; none from no file.
func HostClients(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Services []string `json:"systemd-services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.Services, nil
}

// OnHost runs a program in the host's root.
func OnHost(ctx context.Context, words ...string) (string, error) {
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Path = "/usr/bin/" + words[0]
	command.Err = nil // it is not in this container's PATH
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: hostRoot}
	command.Dir = "/"
	output, err := command.CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(output))
		return string(output), fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, said)
	}
	return string(output), nil
}
